"""Operations that read and write by indices which a run computes."""

from __future__ import annotations

from math import prod

import numpy as np

from nacre.core.module import TensorType
from nacre.core.onnx_export.forms.elementwise import min_or_max
from nacre.core.onnx_export.graph import Value
from nacre.core.onnx_export.writer import OnnxWriter, require_few, writes
from nacre.core.unsupported import Unsupported


@writes("Gather")
def gather(writer: OnnxWriter) -> Value:
    """`Gather`: rows."""
    x, indices = writer.operands
    return writer.gather(x, indices, 0)


@writes("GatherAxis")
def gather_axis(writer: OnnxWriter) -> Value:
    """`GatherAxis`."""
    x, indices = writer.operands
    return writer.gather(x, indices, writer.attributes["axis"] % x.type.rank)


@writes("GatherElements")
def gather_elements(writer: OnnxWriter) -> Value:
    """`GatherElements`."""
    x, indices = writer.operands
    axis = writer.attributes["axis"]
    return writer.move("GatherElements", x, indices, shape=writer.type.shape, axis=axis)


@writes("GatherNd")
def gather_nd(writer: OnnxWriter) -> Value:
    """`GatherNd`."""
    x, indices = writer.operands
    batch = writer.attributes["batch_dims"]
    long = writer.cast(indices, "i64")
    return writer.move("GatherND", x, long, shape=writer.type.shape, batch_dims=batch)


@writes("ScatterElements")
def scatter_elements(writer: OnnxWriter) -> Value:
    """`ScatterElements`."""
    x, indices, updates = writer.operands
    return _scatter(writer, "ScatterElements", x, indices, updates, axis=writer.attributes["axis"])


@writes("ScatterNd")
def scatter_nd(writer: OnnxWriter) -> Value:
    """`ScatterNd`."""
    x, indices, updates = writer.operands
    return _scatter(writer, "ScatterND", x, writer.cast(indices, "i64"), updates)


def _scatter(
    writer: OnnxWriter, operation: str, x: Value, indices: Value, updates: Value, **given: object
) -> Value:
    """What is combined is computed wide and rounded once; what is replaced is only moved."""
    word = str(writer.attributes["reduction"])
    if word == "none":
        return replace_elements(writer, operation, x, indices, updates, **given)
    if x.dtype == "bool":
        raise Unsupported(f"reduction={word} of `bool`")
    x, updates = writer.to_compute_type(x), writer.to_compute_type(updates)
    scattered = writer.add(operation, x, indices, updates, type_=x.type, reduction=word, **given)
    return writer.to_result_type(scattered)


def replace_elements(
    writer: OnnxWriter, operation: str, x: Value, indices: Value, updates: Value, **given: object
) -> Value:
    """Elements of one tensor in the places of another's."""
    if x.dtype in ("i4", "u4", "f8e4m3", "f8e5m2"):
        wide = (writer.to_compute_type(x), indices, writer.to_compute_type(updates))
        return writer.to_result_type(writer.add(operation, *wide, type_=wide[0].type, **given))
    return writer.add(operation, x, indices, updates, type_=x.type, **given)


@writes("ScatterRows")
def scatter_rows(writer: OnnxWriter) -> Value:
    """`ScatterRows`: `ScatterND` with index tuples of one."""
    x, indices, rows = writer.operands
    tuples = writer.reshape(writer.cast(indices, "i64"), (*indices.shape, 1))
    whole = writer.reshape(rows, (*indices.shape, *x.shape[1:]))
    return replace_elements(writer, "ScatterND", x, tuples, whole)


@writes("TopKValues", "TopKIndices")
def top_k(writer: OnnxWriter) -> Value:
    """`TopKValues` and `TopKIndices`: one of the two results of `TopK`."""
    x, shape = writer.to_compute_type(writer.operands[0]), writer.type.shape
    values, places = writer.add_node(
        "TopK",
        [x, writer.ints([writer.attributes["k"]])],
        [TensorType(x.dtype, shape), TensorType("i64", shape)],
        axis=writer.attributes["axis"],
        largest=int(writer.attributes["largest"]),
        sorted=1,
    )
    return writer.to_result_type(values) if writer.op.opcode == "TopKValues" else places


@writes("OneHot")
def one_hot(writer: OnnxWriter) -> Value:
    """`OneHot` of 0 and 1, then a choice between both values, whatever their type."""
    indices, values = writer.operands
    depth, axis = writer.attributes["depth"], writer.attributes["axis"]
    both = writer.array(np.array([0, 1]), "i64")
    size = writer.number(depth, "i64")
    hot = writer.add(
        "OneHot",
        writer.cast(indices, "i64"),
        size,
        both,
        type_=TensorType("i64", writer.type.shape),
        axis=axis,
    )
    off, on = (writer.reshape(writer.part(values, 0, at, at + 1), ()) for at in (0, 1))
    return writer.where(writer.cast(hot, "bool"), on, off)


def _clamp_starts(writer: OnnxWriter, x: Value, sizes: tuple[int, ...], starts: Value) -> Value:
    """Starts of a part, moved inside."""
    room = [dim - size for dim, size in zip(x.shape, sizes, strict=True)]
    long = writer.cast(starts, "i64")
    least = min_or_max(writer, "Max", long, writer.number(0, "i64"))
    return min_or_max(writer, "Min", least, writer.ints(room))


@writes("DynamicSlice")
def dynamic_slice(writer: OnnxWriter) -> Value:
    """`DynamicSlice`: along each axis that is cut, the places from the start on."""
    x, starts = writer.operands
    sizes = writer.type.shape
    first = _clamp_starts(writer, x, sizes, starts)
    for axis, size in enumerate(sizes):
        if size < x.shape[axis]:
            require_few(size)
            places = writer.elementwise(
                "Add", writer.part(first, 0, axis, axis + 1), writer.ints(range(size))
            )
            x = writer.gather(x, places, axis)
    return x


@writes("DynamicUpdate")
def dynamic_update(writer: OnnxWriter) -> Value:
    """`DynamicUpdate`: `ScatterND` over the axes up to the last one that is cut."""
    x, update, starts = writer.operands
    sizes = update.shape
    cut = [axis for axis, size in enumerate(sizes) if size < x.shape[axis]]
    if not cut:
        return update
    depth = cut[-1] + 1
    first = writer.part(_clamp_starts(writer, x, sizes, starts), 0, 0, depth)
    require_few(depth * prod(sizes[:depth]))
    grid = np.moveaxis(np.indices(sizes[:depth], np.int64), 0, -1)
    places = writer.elementwise("Add", writer.array(grid, "i64"), first)
    return replace_elements(writer, "ScatterND", x, places, update)

"""Operations that read and write by indices which a run computes."""

from __future__ import annotations

from math import prod

import numpy as np

from nacre.core.module import TensorType
from nacre.core.onnx_export.forms.elementwise import min_or_max
from nacre.core.onnx_export.graph import Value
from nacre.core.onnx_export.site import OnnxWriter, require_few, writes
from nacre.core.unsupported import Unsupported


@writes("Gather")
def gather(site: OnnxWriter) -> Value:
    """`Gather`: rows."""
    x, indices = site.operands
    return site.gather(x, indices, 0)


@writes("GatherAxis")
def gather_axis(site: OnnxWriter) -> Value:
    """`GatherAxis`."""
    x, indices = site.operands
    return site.gather(x, indices, site.attributes["axis"] % x.type.rank)


@writes("GatherElements")
def gather_elements(site: OnnxWriter) -> Value:
    """`GatherElements`."""
    x, indices = site.operands
    axis = site.attributes["axis"]
    return site.moved("GatherElements", x, indices, shape=site.type.shape, axis=axis)


@writes("GatherNd")
def gather_nd(site: OnnxWriter) -> Value:
    """`GatherNd`."""
    x, indices = site.operands
    batch = site.attributes["batch_dims"]
    long = site.cast(indices, "i64")
    return site.moved("GatherND", x, long, shape=site.type.shape, batch_dims=batch)


@writes("ScatterElements")
def scatter_elements(site: OnnxWriter) -> Value:
    """`ScatterElements`."""
    x, indices, updates = site.operands
    return _scatter(site, "ScatterElements", x, indices, updates, axis=site.attributes["axis"])


@writes("ScatterNd")
def scatter_nd(site: OnnxWriter) -> Value:
    """`ScatterNd`."""
    x, indices, updates = site.operands
    return _scatter(site, "ScatterND", x, site.cast(indices, "i64"), updates)


def _scatter(
    site: OnnxWriter, operation: str, x: Value, indices: Value, updates: Value, **given: object
) -> Value:
    """What is combined is computed wide and rounded once; what is replaced is only moved."""
    word = str(site.attributes["reduction"])
    if word == "none":
        return replace_elements(site, operation, x, indices, updates, **given)
    if x.dtype == "bool":
        raise Unsupported(f"reduction={word} of `bool`")
    x, updates = site.wide(x), site.wide(updates)
    made = site.add(operation, x, indices, updates, type_=x.type, reduction=word, **given)
    return site.result(made)


def replace_elements(
    site: OnnxWriter, operation: str, x: Value, indices: Value, updates: Value, **given: object
) -> Value:
    """Elements of one tensor in the places of another's."""
    if x.dtype in ("i4", "u4", "f8e4m3", "f8e5m2"):
        wide = (site.wide(x), indices, site.wide(updates))
        return site.result(site.add(operation, *wide, type_=wide[0].type, **given))
    return site.add(operation, x, indices, updates, type_=x.type, **given)


@writes("ScatterRows")
def scatter_rows(site: OnnxWriter) -> Value:
    """`ScatterRows`: `ScatterND` with index tuples of one."""
    x, indices, rows = site.operands
    tuples = site.reshape(site.cast(indices, "i64"), (*indices.shape, 1))
    whole = site.reshape(rows, (*indices.shape, *x.shape[1:]))
    return replace_elements(site, "ScatterND", x, tuples, whole)


@writes("TopKValues", "TopKIndices")
def top_k(site: OnnxWriter) -> Value:
    """`TopKValues` and `TopKIndices`: one of the two results of `TopK`."""
    x, shape = site.wide(site.operands[0]), site.type.shape
    values, places = site.several(
        "TopK",
        [x, site.ints([site.attributes["k"]])],
        [TensorType(x.dtype, shape), TensorType("i64", shape)],
        axis=site.attributes["axis"],
        largest=int(site.attributes["largest"]),
        sorted=1,
    )
    return site.result(values) if site.op.opcode == "TopKValues" else places


@writes("OneHot")
def one_hot(site: OnnxWriter) -> Value:
    """`OneHot` of 0 and 1, then a choice between both values, whatever their type."""
    indices, values = site.operands
    depth, axis = site.attributes["depth"], site.attributes["axis"]
    both = site.array(np.array([0, 1]), "i64")
    size = site.number(depth, "i64")
    hot = site.add(
        "OneHot",
        site.cast(indices, "i64"),
        size,
        both,
        type_=TensorType("i64", site.type.shape),
        axis=axis,
    )
    off, on = (site.reshape(site.part(values, 0, at, at + 1), ()) for at in (0, 1))
    return site.where(site.cast(hot, "bool"), on, off)


def _first_places(site: OnnxWriter, x: Value, sizes: tuple[int, ...], starts: Value) -> Value:
    """Starts of a part, moved inside."""
    room = [dim - size for dim, size in zip(x.shape, sizes, strict=True)]
    long = site.cast(starts, "i64")
    least = min_or_max(site, "Max", long, site.number(0, "i64"))
    return min_or_max(site, "Min", least, site.ints(room))


@writes("DynamicSlice")
def dynamic_slice(site: OnnxWriter) -> Value:
    """`DynamicSlice`: along each axis that is cut, the places from the start on."""
    x, starts = site.operands
    sizes = site.type.shape
    first = _first_places(site, x, sizes, starts)
    for axis, size in enumerate(sizes):
        if size < x.shape[axis]:
            require_few(size)
            places = site.each("Add", site.part(first, 0, axis, axis + 1), site.ints(range(size)))
            x = site.gather(x, places, axis)
    return x


@writes("DynamicUpdate")
def dynamic_update(site: OnnxWriter) -> Value:
    """`DynamicUpdate`: `ScatterND` over the axes up to the last one that is cut."""
    x, update, starts = site.operands
    sizes = update.shape
    cut = [axis for axis, size in enumerate(sizes) if size < x.shape[axis]]
    if not cut:
        return update
    depth = cut[-1] + 1
    first = site.part(_first_places(site, x, sizes, starts), 0, 0, depth)
    require_few(depth * prod(sizes[:depth]))
    grid = np.moveaxis(np.indices(sizes[:depth], np.int64), 0, -1)
    places = site.each("Add", site.array(grid, "i64"), first)
    return replace_elements(site, "ScatterND", x, places, update)

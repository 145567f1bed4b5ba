"""Operations of ONNX on windows whose elements are named one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, prod

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.onnx.findings import SMALLER, Unsound
from nacre.core.onnx.handlers.arithmetic import Expr, known_expr, operand
from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.handlers.windows import pool, window_attributes
from nacre.core.onnx.onnx_node import OnnxNode
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array

_MOST_PLACES = 1 << 24


@dataclass(frozen=True)
class _PoolIndices:
    """What is known of the indices that a MaxPool gives."""

    shape: tuple[int, ...]  # that they count in
    largest: int  # one of them is at least as large


@handles("MaxPool")
def max_pool(node: OnnxNode) -> list[int]:
    """The largest element of each window, and where it lies."""
    largest = pool(node, "MaxPool")
    if len(node.outputs) < 2 or not node.outputs[1]:
        return [largest]
    dims, counts = node.shape(0), node.builder.type_of(largest).shape[2:]
    kernel = tuple(int(k) for k in node.require("kernel_shape"))
    given = window_attributes(node, kernel)
    places, is_there = _windows(dims[2:], counts, kernel, given)
    if not is_there.any(axis=1).all():
        reason = "a window lies in the padding only; its second output would be undefined"
        raise Unsupported(reason, "pad less than the windows are wide")
    # Padding repeats an element of the window: it may be found, but not in another place.
    first = np.take_along_axis(places, is_there.argmax(axis=1)[:, None], axis=1)
    places = np.where(is_there, places, first)
    planes, size = prod(dims[:2]), prod(dims[2:])
    flat = node.reshape(node.value(0), (planes, size))
    windows = node.add("GatherAxis", flat, node.constant(places), axis=1)
    best = Expr(node, node.add("ArgMax", windows, axis=2))
    starts = np.arange(places.shape[0]) * places.shape[1]
    found = known_expr(node, _plane_indices(node, places, dims[2:]).ravel()).rows(
        best + known_expr(node, starts)
    )
    whole = found + known_expr(node, np.arange(planes)[:, None] * size)
    indices = whole.reshape(*dims[:2], *counts).value
    reached = int(_plane_indices(node, places, dims[2:]).min(axis=1).max())
    node.builder.facts[indices] = _PoolIndices(dims, reached + (planes - 1) * size)
    return [largest, indices]


def _plane_indices(node: OnnxNode, places: Array, sizes: Sequence[int]) -> Array:
    """What ONNX calls the places of a plane: counted by rows, or by columns."""
    if not node.attribute("storage_order", 0) or len(sizes) == 1:
        return places
    if len(sizes) != 2:
        reason = "`storage_order` is 1, expected 0 for windows of three axes"
        raise Unsupported(reason, "set `storage_order` to 0")
    height, width = sizes
    columns: Array = places // width + places % width * height
    return columns


def _windows(
    sizes: Sequence[int], counts: Sequence[int], kernel: Sequence[int], given: dict[str, object]
) -> tuple[Array, Array]:
    """[windows, elements]: places in a flat plane, and whether they lie inside."""
    if prod(counts) * prod(kernel) > _MOST_PLACES:
        reason = f"{prod(counts)} windows of {prod(kernel)} elements are too many to name"
        raise Unsupported(reason, SMALLER)
    rank = len(sizes)
    steps = [np.asarray(given[name]) for name in ("strides", "dilations", "pads")]
    places = np.zeros([1] * (2 * rank), np.int64)
    is_there = np.ones([1] * (2 * rank), np.bool_)
    for axis, size in enumerate(sizes):
        stride, dilation, pad = (int(values[axis]) for values in steps)
        at = np.arange(counts[axis])[:, None] * stride + np.arange(kernel[axis]) * dilation - pad
        shape = [1] * (2 * rank)
        shape[axis], shape[rank + axis] = at.shape
        places = places + at.reshape(shape) * prod(sizes[axis + 1 :])
        is_there = is_there & ((at >= 0) & (at < size)).reshape(shape)
    flat = (prod(counts), prod(kernel))
    return places.reshape(flat), np.broadcast_to(is_there, places.shape).reshape(flat)


@handles("MaxUnpool")
def max_unpool(node: OnnxNode) -> int:
    """Elements put back where a MaxPool found them, zeros elsewhere."""
    dims = node.shape(0)
    kernel = tuple(int(k) for k in node.require("kernel_shape"))
    given = window_attributes(node, kernel)
    if len(dims) != len(kernel) + 2 or node.shape(1) != dims:
        raise Unsound(f"shapes {list(dims)} and {list(node.shape(1))} with windows {list(kernel)}")
    whole = [
        (dims[axis + 2] - 1) * given["strides"][axis] + window
        - given["pads"][axis] - given["pads"][len(kernel) + axis]
        for axis, window in enumerate(kernel)
    ]  # fmt: skip
    inferred = (*dims[:2], *whole)
    wanted = node.ints("output_shape", 2) or inferred
    shape = _indexed_shape(node, inferred, wanted)
    if min(shape) < 1 or prod(shape) > _MOST_PLACES:
        raise Unsupported(f"the result has the shape {list(shape)}", SMALLER)
    _require_inside(node, shape)
    zeros = known_expr(node, np.zeros(prod(shape)), node.type(0).dtype)
    count = prod(dims)
    indices = operand(node, 1).to("i64").reshape(count).value
    flat = operand(node, 0).reshape(count).value
    scattered = node.add("ScatterElements", zeros.value, indices, flat, axis=0)
    scattered = node.reshape(scattered, shape)
    if wanted == shape:
        return scattered
    if len(wanted) != len(shape) or any(w < s for w, s in zip(wanted, shape, strict=True)):
        raise Unsound(f"`output_shape` is {list(wanted)}, the windows reach {list(shape)}")
    ends = (w - s for w, s in zip(wanted, shape, strict=True))
    return node.add("Pad", scattered, pads=(*[0] * len(shape), *ends))


def _indexed_shape(
    node: OnnxNode, inferred: tuple[int, ...], wanted: tuple[int, ...]
) -> tuple[int, ...]:
    """The shape that indices count in: that of what was pooled, where it is known to be wanted.

    Else that which the windows reach, as ONNX's own example has it. They differ for sizes that the
    windows do not divide.
    """
    fact = _known_pool_indices(node)
    return wanted if fact is not None and fact.shape == wanted else inferred


def _known_pool_indices(node: OnnxNode) -> _PoolIndices | None:
    indices = node.tensor(1)
    fact = node.builder.facts.get(indices) if isinstance(indices, int) else None
    return fact if isinstance(fact, _PoolIndices) else None


def _require_inside(node: OnnxNode, shape: Sequence[int]) -> None:
    """Raise Unsound where some index is outside of the result for certain."""
    size, fact, array = prod(shape), _known_pool_indices(node), node.known(1)
    count = f"the windows reach the shape {list(shape)} of {size} elements"
    if fact is not None and fact.largest >= size:
        message = f"its indices are of a tensor of the shape {list(fact.shape)}, but {count}"
        raise Unsound(message, f"give the node the `output_shape` {list(fact.shape)}")
    if array is not None and array.size and not 0 <= array.min() <= array.max() < size:
        message = f"its indices go from {array.min()} to {array.max()}, but {count}"
        raise Unsound(message, "count the indices in that shape")


@handles("Col2Im")
def col2im(node: OnnxNode) -> int:
    """Windows added up where they overlap."""
    image = node.ints("image_shape", 1) or ()
    block = node.ints("block_shape", 2) or ()
    batch, columns, length = node.shape(0)
    given = window_attributes(node, block)
    if len(image) != len(block) or columns % prod(block) or min(*image, *block) < 1:
        raise Unsound(f"windows {list(block)} of an image {list(image)} with {columns} columns")
    counts = [_window_count(image[axis], axis, block, given) for axis in range(len(block))]
    if prod(counts) != length:
        raise Unsound(f"there are {length} windows, expected {prod(counts)}")
    places, is_there = (part.T.ravel() for part in _windows(image, counts, block, given))
    channels = columns // prod(block)
    rows = operand(node, 0).reshape(batch, channels, places.size).transpose(2, 0, 1)
    if not is_there.all():
        rows = rows.rows(known_expr(node, np.flatnonzero(is_there)))
    shape = (prod(image), batch, channels)
    if prod(shape) > _MOST_PLACES:
        raise Unsupported(f"the result has {prod(shape)} elements", SMALLER)
    zeros = known_expr(node, np.zeros(shape), rows.dtype)
    index = known_expr(node, places[is_there][:, None])
    sums = node.add("ScatterNd", zeros.value, index.value, rows.value, reduction="add")
    return Expr(node, sums).transpose(1, 2, 0).reshape(batch, channels, *image).value


def _window_count(size: int, axis: int, block: Sequence[int], given: dict[str, object]) -> int:
    strides, dilations, pads = (np.asarray(given[k]) for k in ("strides", "dilations", "pads"))
    reach = int(dilations[axis]) * (block[axis] - 1) + 1
    room = size + int(pads[axis]) + int(pads[axis + len(block)]) - reach
    return room // int(strides[axis]) + 1


@handles("MaxRoiPool")
def max_roi_pool(node: OnnxNode) -> int:
    """The largest element of each bin of regions; a bin without elements gives 0."""
    regions = node.require_known(1, "`rois`").astype(np.float32)
    batch, channels, *sizes = node.shape(0)
    bins = tuple(int(size) for size in node.require("pooled_shape"))
    scale = float(node.attribute("spatial_scale", 1.0))
    if len(sizes) != 2 or len(bins) != 2 or regions.ndim != 2 or regions.shape[1] != 5:
        raise Unsound(f"shapes {list(node.shape(0))} and {list(regions.shape)}")
    places = [_bin_indices(region, sizes, bins, scale, batch) for region in regions]
    flat = [place for region in places for place in region]
    most = max(1, *(len(place) for place in flat))
    if len(flat) * most > _MOST_PLACES:
        reason = f"{len(flat)} bins of up to {most} elements are too many to name"
        raise Unsupported(reason, SMALLER)
    index = np.array([np.resize(p, most) if len(p) else np.zeros(most) for p in flat], np.int64)
    table = operand(node, 0).transpose(0, 2, 3, 1).reshape(batch * prod(sizes), channels)
    windows = table.rows(known_expr(node, index))
    largest = Expr(node, node.add("Reduce", windows.value, op="Max", axes=(1,), keepdims=False))
    is_empty = np.array([[not len(place)] for place in flat])
    if is_empty.any():
        zero = known_expr(node, np.zeros((), GRAPH_TYPES[largest.dtype].dtype))
        largest = Expr(
            node, node.add("Where", known_expr(node, is_empty).value, zero.value, largest.value)
        )
    return largest.reshape(len(regions), *bins, channels).transpose(0, 3, 1, 2).value


def _bin_indices(
    region: Array, sizes: Sequence[int], bins: Sequence[int], scale: float, batch: int
) -> list[Array]:
    """For each bin of a region the places of its elements in [batch, height, width]."""
    image, *corners = (float(v) for v in region)
    if not 0 <= image < batch or not all(abs(c * scale) < 1 << 30 for c in corners):
        raise Unsound(f"`rois` has the region {region.tolist()}")
    left, top, right, bottom = (floor(c * scale + 0.5) for c in corners)
    indices = []
    for row in range(bins[0]):
        ys = _bin(row, top, bottom, bins[0], sizes[0])
        for column in range(bins[1]):
            xs = _bin(column, left, right, bins[1], sizes[1])
            indices.append(((int(image) * sizes[0] + ys[:, None]) * sizes[1] + xs).ravel())
    return indices


def _bin(index: int, start: int, end: int, count: int, size: int) -> Array:
    wide = np.float32(max(end - start + 1, 1)) / np.float32(count)
    low = min(max(floor(index * wide) + start, 0), size)
    high = min(max(ceil((index + 1) * wide) + start, 0), size)
    return np.arange(low, max(high, low))

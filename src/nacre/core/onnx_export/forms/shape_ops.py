"""Operations that move elements by places which are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.onnx_export.graph import Value
from nacre.core.onnx_export.types import takes, wider_type
from nacre.core.onnx_export.writer import OnnxWriter, require_few, writes
from nacre.core.unsupported import Unsupported


@writes("Reshape")
def reshape(writer: OnnxWriter) -> Value:
    """`Reshape`."""
    return writer.reshape(writer.operands[0], writer.type.shape)


@writes("ExpandDims")
def unsqueeze(writer: OnnxWriter) -> Value:
    """`ExpandDims`: `Unsqueeze`, axes counted in the result."""
    (x,), axes = writer.operands, list[int]()
    for axis in sorted(writer.attributes["axes"]):
        axes = [at + (at >= axis) for at in axes] + [axis]
    if not axes:
        return x
    return writer.move("Unsqueeze", x, writer.ints(sorted(axes)), shape=writer.type.shape)


@writes("Squeeze")
def squeeze(writer: OnnxWriter) -> Value:
    """`Squeeze`."""
    (x,), axes = writer.operands, writer.attributes["axes"]
    return writer.move("Squeeze", x, writer.ints(axes), shape=writer.type.shape) if axes else x


@writes("Transpose")
def transpose(writer: OnnxWriter) -> Value:
    """`Transpose`."""
    return writer.transpose(writer.operands[0], writer.attributes["permutation"])


@writes("Slice")
def slice_(writer: OnnxWriter) -> Value:
    """`Slice`; starts and ends are moved inside of the axes."""
    (x,), shape = writer.operands, writer.type.shape
    starts, ends, steps = (writer.attributes[name] for name in ("starts", "ends", "steps"))
    axes = [axis for axis in range(x.type.rank) if shape[axis] != x.shape[axis]]
    if not axes:
        return x
    lists = (
        [min(max(starts[a], 0), x.shape[a]) for a in axes],
        [min(max(ends[a], 0), x.shape[a]) for a in axes],
        axes,
        # A step along an axis that has one element leads nowhere.
        [steps[a] if shape[a] > 1 else 1 for a in axes],
    )
    # One element may be followed by others that a smaller step would take.
    for at, axis in enumerate(axes):
        if shape[axis] == 1:
            lists[1][at] = lists[0][at] + 1
    return writer.move("Slice", x, *map(writer.ints, lists), shape=shape)


@writes("Index")
def index(writer: OnnxWriter) -> Value:
    """One element; Unsupported for one outside of the tensor, of which no run has a result."""
    (x,), indices = writer.operands, writer.attributes["indices"]
    for axis, (at, size) in enumerate(zip(indices, x.shape, strict=True)):
        if not 0 <= at < size:
            raise Unsupported(f"index {at} along axis {axis}, expected 0 to {size - 1}")
    return writer.move("GatherND", x, writer.ints(indices), shape=()) if indices else x


@writes("Broadcast")
def broadcast(writer: OnnxWriter) -> Value:
    """`Broadcast`."""
    return writer.expand(writer.operands[0], writer.type.shape)


@writes("Concat")
def concat(writer: OnnxWriter) -> Value:
    """`Concat`."""
    return writer.concatenate(writer.operands, writer.attributes["axis"] % writer.type.rank)


@writes("Flip")
def flip(writer: OnnxWriter) -> Value:
    """`Flip`: a `Slice` that runs backwards."""
    (x,) = writer.operands
    axes = sorted({axis % x.type.rank for axis in writer.attributes["axes"]})
    if not axes:
        return x
    count, least = len(axes), -(1 << 62)
    lists = ([-1] * count, [least] * count, axes, [-1] * count)
    return writer.move("Slice", x, *map(writer.ints, lists), shape=x.shape)


@writes("Tile")
def tile(writer: OnnxWriter) -> Value:
    """`Tile`."""
    (x,), repeats = writer.operands, writer.attributes["repeats"]
    return writer.move("Tile", x, writer.ints(repeats), shape=writer.type.shape)


@writes("Pad")
def pad(writer: OnnxWriter) -> Value:
    """`Pad`: what is below 0 is cut off, then elements are put around."""
    (x,), pads, mode = writer.operands, writer.attributes["pads"], str(writer.attributes["mode"])
    rank = x.type.rank
    for axis in range(rank):
        begin, end = max(0, -pads[axis]), max(0, -pads[axis + rank])
        x = writer.part(x, axis, begin, x.shape[axis] - end) if begin or end else x
    around = [max(0, width) for width in pads]
    if not any(around):
        return x
    if mode != "constant":
        return _pad_by_gather(writer, x, around, mode)
    dtype = wider_type("Pad", x.dtype)
    assert dtype is not None  # every type has one
    # Rounded to the tensor's type first.
    value = np.array(_fill_number(writer.attributes["value"])).astype(GRAPH_TYPES[x.dtype].dtype)
    given = writer.array(value.astype(GRAPH_TYPES[dtype].dtype), dtype)
    return writer.move("Pad", x, writer.ints(around), given, shape=writer.type.shape, mode=mode)


def _fill_number(value: float) -> float:
    """A number; integers beyond all floats are infinite, others stay integers."""
    if isinstance(value, int) and abs(value) >= 1 << 63:
        return float("inf") if value > 0 else float("-inf")
    return value


def _pad_by_gather(writer: OnnxWriter, x: Value, around: Sequence[int], mode: str) -> Value:
    """Elements of the tensor itself around it, by their places along each axis.

    `Pad` of ONNX has these modes too, but readers do not agree on how far `wrap` goes.
    """
    for axis, size in enumerate(x.shape):
        begin, end = around[axis], around[axis + x.type.rank]
        if begin or end:
            require_few(begin + size + end)
            places = np.arange(-begin, size + end)
            x = writer.gather(x, writer.ints(_PLACES[mode](places, size).tolist()), axis)
    return x


_PLACES = {
    "edge": lambda places, size: np.clip(places, 0, size - 1),
    "wrap": lambda places, size: places % size,
    "reflect": lambda places, size: size - 1 - abs(size - 1 - abs(places)),
}


@writes("Iota")
def iota(writer: OnnxWriter) -> Value:
    """`Iota`: one row, stretched."""
    axis, shape = writer.attributes["axis"] % writer.type.rank, writer.type.shape
    require_few(shape[axis])
    row = np.arange(shape[axis]).astype(writer.type.element.dtype)
    row = row.reshape([dim if at == axis else 1 for at, dim in enumerate(shape)])
    return writer.expand(writer.array(row, writer.type.dtype), shape)


@writes("Trilu")
def trilu(writer: OnnxWriter) -> Value:
    """`Trilu`."""
    (x,) = writer.operands
    k = writer.number(min(max(writer.attributes["k"], -(1 << 31)), 1 << 31), "i64")
    return writer.move("Trilu", x, k, shape=x.shape, upper=int(writer.attributes["upper"]))


@writes("DepthToSpace")
def depth_to_space(writer: OnnxWriter) -> Value:
    """`DepthToSpace`."""
    (x,), block, mode = writer.operands, writer.attributes["block"], str(writer.attributes["mode"])
    if takes("DepthToSpace", x.dtype):
        return writer.add("DepthToSpace", x, type_=writer.type, blocksize=block, mode=mode)
    n, c, h, w = x.shape
    rest = c // block**2
    split = (block, block, rest) if mode == "DCR" else (rest, block, block)
    order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    turned = writer.transpose(writer.reshape(x, (n, *split, h, w)), order)
    return writer.reshape(turned, writer.type.shape)


@writes("SpaceToDepth")
def space_to_depth(writer: OnnxWriter) -> Value:
    """`SpaceToDepth`, which ONNX has with the block before the channels only."""
    (x,), block, mode = writer.operands, writer.attributes["block"], str(writer.attributes["mode"])
    if mode == "DCR" and takes("SpaceToDepth", x.dtype):
        return writer.add("SpaceToDepth", x, type_=writer.type, blocksize=block)
    n, c, h, w = x.shape
    split = writer.reshape(x, (n, c, h // block, block, w // block, block))
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return writer.reshape(writer.transpose(split, order), writer.type.shape)

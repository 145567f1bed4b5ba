"""Operations that move elements by places which are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.onnx_export.graph import Value
from nacre.core.onnx_export.site import OnnxWriter, require_few, writes
from nacre.core.onnx_export.types import carrier, takes
from nacre.core.unsupported import Unsupported


@writes("Reshape")
def reshape(site: OnnxWriter) -> Value:
    """`Reshape`."""
    return site.reshape(site.operands[0], site.type.shape)


@writes("ExpandDims")
def unsqueeze(site: OnnxWriter) -> Value:
    """`ExpandDims`: `Unsqueeze`, axes counted in the result."""
    (x,), axes = site.operands, list[int]()
    for axis in sorted(site.attributes["axes"]):
        axes = [at + (at >= axis) for at in axes] + [axis]
    if not axes:
        return x
    return site.moved("Unsqueeze", x, site.ints(sorted(axes)), shape=site.type.shape)


@writes("Squeeze")
def squeeze(site: OnnxWriter) -> Value:
    """`Squeeze`."""
    (x,), axes = site.operands, site.attributes["axes"]
    return site.moved("Squeeze", x, site.ints(axes), shape=site.type.shape) if axes else x


@writes("Transpose")
def transpose(site: OnnxWriter) -> Value:
    """`Transpose`."""
    return site.transpose(site.operands[0], site.attributes["permutation"])


@writes("Slice")
def slice_(site: OnnxWriter) -> Value:
    """`Slice`; starts and ends are moved inside of the axes."""
    (x,), shape = site.operands, site.type.shape
    starts, ends, steps = (site.attributes[name] for name in ("starts", "ends", "steps"))
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
    return site.moved("Slice", x, *map(site.ints, lists), shape=shape)


@writes("Index")
def index(site: OnnxWriter) -> Value:
    """One element; Unsupported for one outside of the tensor, of which no run has a result."""
    (x,), indices = site.operands, site.attributes["indices"]
    for axis, (at, size) in enumerate(zip(indices, x.shape, strict=True)):
        if not 0 <= at < size:
            raise Unsupported(f"index {at} along axis {axis}, expected 0 to {size - 1}")
    return site.moved("GatherND", x, site.ints(indices), shape=()) if indices else x


@writes("Broadcast")
def broadcast(site: OnnxWriter) -> Value:
    """`Broadcast`."""
    return site.expand(site.operands[0], site.type.shape)


@writes("Concat")
def concat(site: OnnxWriter) -> Value:
    """`Concat`."""
    return site.concatenate(site.operands, site.attributes["axis"] % site.type.rank)


@writes("Flip")
def flip(site: OnnxWriter) -> Value:
    """`Flip`: a `Slice` that runs backwards."""
    (x,) = site.operands
    axes = sorted({axis % x.type.rank for axis in site.attributes["axes"]})
    if not axes:
        return x
    count, least = len(axes), -(1 << 62)
    lists = ([-1] * count, [least] * count, axes, [-1] * count)
    return site.moved("Slice", x, *map(site.ints, lists), shape=x.shape)


@writes("Tile")
def tile(site: OnnxWriter) -> Value:
    """`Tile`."""
    (x,), repeats = site.operands, site.attributes["repeats"]
    return site.moved("Tile", x, site.ints(repeats), shape=site.type.shape)


@writes("Pad")
def pad(site: OnnxWriter) -> Value:
    """`Pad`: what is below 0 is cut off, then elements are put around."""
    (x,), pads, mode = site.operands, site.attributes["pads"], str(site.attributes["mode"])
    rank = x.type.rank
    for axis in range(rank):
        begin, end = max(0, -pads[axis]), max(0, -pads[axis + rank])
        x = site.part(x, axis, begin, x.shape[axis] - end) if begin or end else x
    around = [max(0, width) for width in pads]
    if not any(around):
        return x
    if mode != "constant":
        return _around(site, x, around, mode)
    dtype = carrier("Pad", x.dtype)
    assert dtype is not None  # every type has one
    # Rounded to the tensor's type first.
    value = np.array(_float(site.attributes["value"])).astype(GRAPH_TYPES[x.dtype].dtype)
    given = site.array(value.astype(GRAPH_TYPES[dtype].dtype), dtype)
    return site.moved("Pad", x, site.ints(around), given, shape=site.type.shape, mode=mode)


def _float(value: float) -> float:
    """A number; integers beyond all floats are infinite, others stay integers."""
    if isinstance(value, int) and abs(value) >= 1 << 63:
        return float("inf") if value > 0 else float("-inf")
    return value


def _around(site: OnnxWriter, x: Value, around: Sequence[int], mode: str) -> Value:
    """Elements of the tensor itself around it, by their places along each axis.

    `Pad` of ONNX has these modes too, but readers do not agree on how far `wrap` goes.
    """
    for axis, size in enumerate(x.shape):
        begin, end = around[axis], around[axis + x.type.rank]
        if begin or end:
            require_few(begin + size + end)
            places = np.arange(-begin, size + end)
            x = site.gather(x, site.ints(_PLACES[mode](places, size).tolist()), axis)
    return x


_PLACES = {
    "edge": lambda places, size: np.clip(places, 0, size - 1),
    "wrap": lambda places, size: places % size,
    "reflect": lambda places, size: size - 1 - abs(size - 1 - abs(places)),
}


@writes("Iota")
def iota(site: OnnxWriter) -> Value:
    """`Iota`: one row, stretched."""
    axis, shape = site.attributes["axis"] % site.type.rank, site.type.shape
    require_few(shape[axis])
    row = np.arange(shape[axis]).astype(site.type.element.dtype)
    row = row.reshape([dim if at == axis else 1 for at, dim in enumerate(shape)])
    return site.expand(site.array(row, site.type.dtype), shape)


@writes("Trilu")
def trilu(site: OnnxWriter) -> Value:
    """`Trilu`."""
    (x,) = site.operands
    k = site.number(min(max(site.attributes["k"], -(1 << 31)), 1 << 31), "i64")
    return site.moved("Trilu", x, k, shape=x.shape, upper=int(site.attributes["upper"]))


@writes("DepthToSpace")
def depth_to_space(site: OnnxWriter) -> Value:
    """`DepthToSpace`."""
    (x,), block, mode = site.operands, site.attributes["block"], str(site.attributes["mode"])
    if takes("DepthToSpace", x.dtype):
        return site.add("DepthToSpace", x, type_=site.type, blocksize=block, mode=mode)
    n, c, h, w = x.shape
    rest = c // block**2
    split = (block, block, rest) if mode == "DCR" else (rest, block, block)
    order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    turned = site.transpose(site.reshape(x, (n, *split, h, w)), order)
    return site.reshape(turned, site.type.shape)


@writes("SpaceToDepth")
def space_to_depth(site: OnnxWriter) -> Value:
    """`SpaceToDepth`, which ONNX has with the block before the channels only."""
    (x,), block, mode = site.operands, site.attributes["block"], str(site.attributes["mode"])
    if mode == "DCR" and takes("SpaceToDepth", x.dtype):
        return site.add("SpaceToDepth", x, type_=site.type, blocksize=block)
    n, c, h, w = x.shape
    split = site.reshape(x, (n, c, h // block, block, w // block, block))
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return site.reshape(site.transpose(split, order), site.type.shape)

"""Gradients of what moves elements to fixed places: they move back, and meet in sums."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from math import prod
from types import MappingProxyType

from nacre.core.gradients.indexing import scatter_add
from nacre.core.gradients.products import transpose
from nacre.core.gradients.site import GradientSite, Rule
from nacre.core.gradients.writer import Value
from nacre.core.module import Shape


def reshape(site: GradientSite) -> Value:
    """Of `Reshape`, `ExpandDims` and `Squeeze`."""
    return site.scalar_gradient or site.g.reshape(site.x.shape)


def permute(site: GradientSite) -> Value:
    """The axes back in their order."""
    order = site.attributes["permutation"]
    return site.scalar_gradient or site.g.transpose(
        [order.index(axis) for axis in range(len(order))]
    )


def index(site: GradientSite) -> Value:
    """Zeros around one element."""
    sizes = site.x.shape
    # An index outside is a fault of the run, not of the module.
    places = [
        min(max(at, 0), n - 1) for at, n in zip(site.attributes["indices"], sizes, strict=True)
    ]
    behind = [n - 1 - at for at, n in zip(places, sizes, strict=True)]
    single = site.g.reshape((1,) * len(sizes))
    return single.op("Pad", pads=(*places, *behind))


def slice_(site: GradientSite) -> Value:
    """Zeros between and around: each element is padded to a step, then the whole to the tensor."""
    sizes, counts = site.x.shape, site.y.shape
    starts = [min(max(at, 0), n) for at, n in zip(site.attributes["starts"], sizes, strict=True)]
    steps = [
        step if count > 1 else 1
        for step, count in zip(site.attributes["steps"], counts, strict=True)
    ]
    value = site.g
    for axis, step in enumerate(steps):
        if step > 1:
            value = _insert_zeros(value, axis, step)
    # Below 0 where the last gap reaches over the end.
    ends = [n - at - own for n, at, own in zip(sizes, starts, value.shape, strict=True)]
    return value.op("Pad", pads=(*starts, *ends)) if any((*starts, *ends)) else value


def _insert_zeros(value: Value, axis: int, step: int) -> Value:
    """Every element along an axis followed by zeros, to the length of a step."""
    sizes = value.shape
    apart = value.reshape((prod(sizes[:axis]), sizes[axis], 1, prod(sizes[axis + 1 :])))
    padded = apart.op("Pad", pads=(0, 0, 0, 0, 0, 0, step - 1, 0))
    return padded.reshape((*sizes[:axis], sizes[axis] * step, *sizes[axis + 1 :]))


def broadcast(site: GradientSite) -> Value:
    """Summed over the axes that were stretched."""
    return site.unbroadcast(site.compact_g)


def concat(site: GradientSite) -> Value:
    """The part that came from this operand."""
    axis = site.attributes["axis"] % site.y.rank
    if "firsts" not in site.shared:  # of all operands at once: there may be very many
        sizes = [value.shape[axis] for value in site.operands]
        site.shared["firsts"] = [0, *accumulate(sizes)]
    first = site.shared["firsts"][site.index]
    starts = tuple(first if a == axis else 0 for a in range(site.y.rank))
    ends = tuple(at + n for at, n in zip(starts, site.operand.shape, strict=True))
    return site.scalar_gradient or site.g.op(
        "Slice", starts=starts, ends=ends, steps=(1,) * len(ends)
    )


def pad(site: GradientSite) -> Value:
    """The inside; what was reflected, repeated or wrapped is added where it came from."""
    pads, mode = site.attributes["pads"], str(site.attributes["mode"])
    if mode == "constant":
        return site.g.op("Pad", pads=tuple(-width for width in pads))
    value, rank = site.g, site.x.rank
    for axis, size in enumerate(site.x.shape):
        begin, end = pads[axis], pads[axis + rank]
        if begin or end:
            source = site.writer.iota((size,), 0).op("Pad", pads=(begin, end), mode=mode)
            value = scatter_add(value, source, axis, size)
    return value


def flip(site: GradientSite) -> Value:
    """The same axes backwards again."""
    return site.scalar_gradient or site.g.op("Flip", axes=site.attributes["axes"])


def tile(site: GradientSite) -> Value:
    """All copies summed."""
    value = site.g
    for axis, (times, size) in enumerate(
        zip(site.attributes["repeats"], site.x.shape, strict=True)
    ):
        if times > 1:
            before, behind = value.shape[:axis], value.shape[axis + 1 :]
            copies = value.reshape((prod(before), times, size, prod(behind)))
            value = copies.sum((1,)).reshape((*before, size, *behind))
    return value


def _inverse_block_move(inverse: str) -> Rule:
    def rule(site: GradientSite) -> Value:
        given = site.attributes
        return site.scalar_gradient or site.g.op(
            inverse, block=given["block"], mode=str(given["mode"])
        )

    return rule


def triangle(site: GradientSite) -> Value:
    """The same triangle."""
    return site.g.op("Trilu", upper=site.attributes["upper"], k=site.attributes["k"])


def resize(site: GradientSite) -> Value:
    """Axis by axis: to the neighbour, or through the weights, which are the resized unit matrix."""
    given, value = site.attributes, site.g
    for axis, (size, count) in enumerate(zip(site.x.shape, site.y.shape, strict=True)):
        scale = float(given["scales"][axis]) if given["scales"] else count / size
        if size == count and scale == 1.0:
            continue
        along = (scale,) if given["scales"] else ()
        if given["mode"] == "nearest":
            places = _resize_like(site, site.writer.iota((size,), 0), (count,), along)
            value = scatter_add(value, places, axis, size)
        else:
            unit = _unit_matrix(value, size)
            weights = _resize_like(site, unit, (size, count), (1.0, *along) if along else ())
            value = _product_along(value, transpose(weights), axis)
    return value


def _resize_like(
    site: GradientSite, value: Value, sizes: Shape, scales: tuple[float, ...]
) -> Value:
    """Another tensor resized in the same way."""
    given = {n: str(v) if isinstance(v, str) else v for n, v in site.attributes.items()}
    return value.op("Resize", **{**given, "sizes": sizes, "scales": scales})


def _unit_matrix(value: Value, size: int) -> Value:
    square, writer = (size, size), value.writer
    return writer.iota(square, 0).compare("Eq", writer.iota(square, 1)).op("Cast", to=value.dtype)


def _product_along(value: Value, weights: Value, axis: int) -> Value:
    """A product with a matrix along one axis."""
    order = (*(a for a in range(value.rank) if a != axis), axis)
    moved = value.transpose(order)
    rows = moved.reshape((-1, moved.shape[-1])).op("MatMul", weights)
    back = rows.reshape((*moved.shape[:-1], weights.shape[1]))
    return back.transpose([order.index(a) for a in range(value.rank)])


MOVEMENT: Mapping[str, Rule] = MappingProxyType(
    {
        "Reshape": reshape,
        "ExpandDims": reshape,
        "Squeeze": reshape,
        "Transpose": permute,
        "Index": index,
        "Slice": slice_,
        "Broadcast": broadcast,
        "Pad": pad,
        "Flip": flip,
        "Tile": tile,
        "DepthToSpace": _inverse_block_move("SpaceToDepth"),
        "SpaceToDepth": _inverse_block_move("DepthToSpace"),
        "Trilu": triangle,
        "Resize": resize,
    }
)

"""Convolutions and poolings over one, two and three axes as those over two with channels last."""

from __future__ import annotations

import numpy as np

from nacre.core.rewrite.inexact import scales
from nacre.core.rewrite.inexact.transposes import inverse
from nacre.core.rewrite.site import RewriteSite, Rules
from nacre.kernels.products.core_products import conv2d_pads

WEIGHTED = ("Conv", "ConvTranspose")
Ints = tuple[int, ...]
_MOST_EMPTY_ROWS = 16  # of padding beyond the windows at the border


def ints(site: RewriteSite, name: str, count: int, default: int) -> Ints:
    """A list of integers, one for each axis, that may be left out."""
    given = site.attributes[name]
    assert isinstance(given, tuple)
    return given or (default,) * count


def pads_of(site: RewriteSite, count: int) -> tuple[Ints, Ints]:
    """Padding before and behind each axis."""
    both = ints(site, "pads", 2 * count, 0)
    return both[:count], both[count:]


def transpose(site: RewriteSite, value: int, order: Ints) -> int:
    """A tensor with its axes in another order; a constant is turned at once."""
    known = site.constant(value)
    if known is not None:
        array = np.ascontiguousarray(known.transpose(order))
        return site.literal(array, site.type(value).dtype)
    return site.add("Transpose", value, permutation=order)


def convolution_of_core_v1(site: RewriteSite) -> int | None:
    """`Conv2d` as `Conv` with channels last."""
    shapes = [site.type(value).shape for value in site.operands]
    pads = conv2d_pads(shapes[0], shapes[1], site.attributes)
    assert pads is not None  # the module is verified
    (top, bottom), (left, right) = pads
    around = (top, left, bottom, right)
    strides = site.attributes["strides"]
    return site.add("Conv", *site.operands, strides=strides, pads=around, layout="NHWC")


def channels_last(site: RewriteSite) -> int | None:
    """A window over any number of axes with channels first, between transpositions."""
    rank = site.op.type.rank
    if site.attributes["layout"] != "NCHW":
        return None
    order = (0, *range(2, rank), 1)
    operands = [transpose(site, site.operands[0], order), *site.operands[1:]]
    if site.op.opcode in WEIGHTED:
        operands[1] = transpose(site, operands[1], (*range(2, rank), 1, 0))
    given = {**site.op.attributes, "layout": "NHWC"}
    result = site.add(site.op.opcode, *operands, **given)
    return site.add("Transpose", result, permutation=inverse(order))


def window_of_line(site: RewriteSite) -> int | None:
    """A window over one axis: over two, of which the first has size 1."""
    if site.op.type.rank != 3 or site.attributes["layout"] != "NHWC":
        return None
    images, length, channels = site.type(site.operands[0]).shape
    given: dict[str, object] = {**site.op.attributes}
    for name in ("strides", "dilations", "kernel"):
        if given.get(name):
            given[name] = (1, *site.op.attributes[name])
    if given.get("output_padding"):
        given["output_padding"] = (0, *site.op.attributes["output_padding"])
    if given.get("pads"):
        begin, end = site.op.attributes["pads"]
        given["pads"] = (0, begin, 0, end)
    operands = [site.reshape(site.operands[0], (images, 1, length, channels))]
    operands += site.operands[1:]
    if site.op.opcode in WEIGHTED:
        operands[1] = site.reshape(operands[1], (1, *site.type(operands[1]).shape))
    result = site.add(site.op.opcode, *operands, **given)
    return site.reshape(result, site.op.type.shape)


def pool_of_volumes(site: RewriteSite) -> int | None:
    """A pooling over three axes: over the last two, then over the first.

    The largest of the largest is the largest. Windows are boxes, so the mean of means is the mean,
    also where padding is left out.
    """
    if site.op.type.rank != 5 or site.attributes["layout"] != "NHWC":
        return None
    images, depth, height, width, channels = site.type(site.operands[0]).shape
    _, deep, high, wide, _ = site.op.type.shape
    begins, ends = pads_of(site, 3)
    kernel = site.attributes["kernel"]
    assert isinstance(kernel, tuple)
    strides, dilations = ints(site, "strides", 3, 1), ints(site, "dilations", 3, 1)
    plane = site.reshape(site.operands[0], (images * depth, height, width, channels))
    given = {**site.op.attributes, "layout": "NHWC"}
    first = {"kernel": kernel[1:], "strides": strides[1:], "dilations": dilations[1:],
             "pads": (*begins[1:], *ends[1:])}  # fmt: skip
    pooled = site.add(site.op.opcode, plane, **{**given, **first})
    pooled = site.reshape(pooled, (images, depth, high * wide, channels))
    second = {"kernel": (kernel[0], 1), "strides": (strides[0], 1), "dilations": (dilations[0], 1),
              "pads": (begins[0], 0, ends[0], 0)}  # fmt: skip
    pooled = site.add(site.op.opcode, pooled, **{**given, **second})
    return site.reshape(pooled, (images, deep, high, wide, channels))


def convolution_of_volumes(site: RewriteSite) -> int | None:
    """A convolution over three axes: the sum of those over two, one for each place in depth."""
    weights = site.constant(site.operands[1])
    if site.op.type.rank != 5 or site.attributes["layout"] != "NHWC" or weights is None:
        return None
    begins, ends = pads_of(site, 3)
    strides, dilations = ints(site, "strides", 3, 1), ints(site, "dilations", 3, 1)
    x = pad_axis(site, site.operands[0], 1, begins[0], ends[0])
    images, _, height, width, channels = site.type(x).shape
    deep = site.op.type.shape[1]
    flat = {"layout": "NHWC", "groups": site.attributes["groups"], "strides": strides[1:],
            "dilations": dilations[1:], "pads": (*begins[1:], *ends[1:])}  # fmt: skip
    total: int | None = None
    for tap in range(weights.shape[0]):
        part = strided_slice(site, x, 1, tap * dilations[0], strides[0], deep)
        plane = site.reshape(part, (images * deep, height, width, channels))
        kernel = site.literal(weights[tap], site.op.type.dtype)
        bias = site.operands[2:] if total is None else ()
        convolved = site.add("Conv", plane, kernel, *bias, **flat)
        total = convolved if total is None else site.add("BinOp", total, convolved, op="Add")
    assert total is not None
    return site.reshape(total, site.op.type.shape)


def pad_axis(
    site: RewriteSite, value: int, axis: int, before: int, behind: int, fill: float = 0.0
) -> int:  # fmt: skip
    """A tensor with elements added at both ends of an axis."""
    if not before and not behind:
        return value
    rank = site.type(value).rank
    pads = [0] * (2 * rank)
    pads[axis], pads[rank + axis] = before, behind
    return site.add("Pad", value, pads=tuple(pads), value=fill)


def strided_slice(
    site: RewriteSite, value: int, axis: int, first: int, step: int, count: int
) -> int:
    """So many places along an axis."""
    return slice_axis(site, value, axis, first, first + (count - 1) * step + 1, step)


def slice_axis(
    site: RewriteSite, value: int, axis: int, first: int, end: int, step: int = 1
) -> int:
    """Part of a tensor along one axis."""
    shape = site.type(value).shape
    if first == 0 and end >= shape[axis] and step == 1:
        return value
    starts, ends, steps = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis], ends[axis], steps[axis] = first, end, step
    return site.add(
        "Slice", value, starts=tuple(starts), ends=tuple(ends), steps=tuple(steps)
    )  # fmt: skip


def is_plane(site: RewriteSite) -> bool:
    """Whether a window runs over two axes with channels last."""
    return site.op.type.rank == 4 and site.attributes["layout"] == "NHWC"


def pointwise(site: RewriteSite) -> int | None:
    """A convolution that multiplies each pixel by a matrix: any rows make a tile then."""
    weights = site.constant(site.operands[1])
    if weights is None or not is_plane(site) or site.attributes["groups"] != 1:
        return None
    begins, ends = pads_of(site, 2)
    if any((*begins, *ends)) or set(ints(site, "strides", 2, 1)) != {1}:
        return None
    if weights.shape[:2] != (1, 1):
        return None
    matrix = site.literal(np.ascontiguousarray(weights[0, 0].T), site.op.type.dtype)
    return site.add("Linear", site.operands[0], matrix, *site.operands[2:])


def border_of_zeros(site: RewriteSite) -> int | None:
    """Padding that holds many rows of windows alone: elements, for a tile of it would read none."""
    if not is_plane(site):
        return None
    (top, left), (bottom, right) = pads_of(site, 2)
    if not _has_empty_rows(site, top, bottom):
        return None
    x = pad_axis(site, site.operands[0], 1, top, bottom)
    given = {**site.op.attributes, "pads": (0, left, 0, right)}
    return site.add("Conv", x, *site.operands[1:], **given)


def _has_empty_rows(site: RewriteSite, top: int, bottom: int) -> bool:
    """Whether padding is so high that many rows of windows see nothing else."""
    rows, gap = site.type(site.operands[1]).shape[0], ints(site, "dilations", 2, 1)[0]
    return max(top, bottom) > gap * (rows - 1) + _MOST_EMPTY_ROWS


def pad_into_convolution(site: RewriteSite) -> int | None:
    """`Conv` of a `Pad` with zeros: the pads of the convolution, where they are no larger."""
    before = site.only(site.operands[0], "Pad")
    if before is not None and is_plane(site):
        (top, _), (bottom, _) = pads_of(site, 2)
        pads = before.attributes["pads"]
        if _has_empty_rows(site, top + pads[1], bottom + pads[5]):
            return None
    return scales.pad(site)


def separate_bias(site: RewriteSite) -> int | None:
    """A bias that is computed is added afterwards."""
    if len(site.operands) < 3 or site.constant(site.operands[2]) is not None:
        return None
    product = site.add(site.op.opcode, *site.operands[:2], **site.op.attributes)
    bias = site.operands[2]
    if site.op.opcode != "Linear" and site.attributes["layout"] == "NCHW":
        rest = site.op.type.rank - 2
        bias = site.reshape(bias, (*site.type(bias).shape, *(1,) * rest))
    return site.add("BinOp", product, bias, op="Add")


_EVERY = ("Conv", "ConvTranspose", "MaxPool", "AvgPool", "LpPool")
# Windows of every rank to two axes with channels last; transpositions are left around them.
WINDOWS_OVER_TWO_AXES: Rules = {
    "Conv2d": [convolution_of_core_v1],
    "Conv": [channels_last, window_of_line, convolution_of_volumes],
    **{name: [channels_last, window_of_line] for name in ("ConvTranspose", "LpPool")},
    **{name: [channels_last, window_of_line, pool_of_volumes] for name in ("MaxPool", "AvgPool")},
}
DEVICE_WINDOWS: Rules = {"Conv": [separate_bias, pointwise, border_of_zeros]}

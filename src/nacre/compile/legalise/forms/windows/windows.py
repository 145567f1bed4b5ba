"""Convolutions and poolings over one, two and three axes as those over two with channels last."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from nacre.core.rewrite.inexact import scales
from nacre.core.rewrite.inexact.transposes import inverse
from nacre.core.rewrite.site import RewriteSite, Rules
from nacre.core.values import Array
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
        part = _strided_slice(site, x, 1, tap * dilations[0], strides[0], deep)
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


def _strided_slice(
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


def pad_to_whole_windows(site: RewriteSite) -> int | None:
    """A pooling whose last window hangs over: with padding that takes it in."""
    if not is_plane(site) or not site.attributes["ceil"]:
        return None
    given: dict[str, object] = {**site.op.attributes, "ceil": False}
    x = site.operands[0]
    begins, ends = pads_of(site, 2)
    if site.attributes.get("count_pad") and any((*begins, *ends)):
        for axis in (0, 1):  # what hangs over does not count, padding does: it becomes elements
            x = pad_axis(site, x, axis + 1, begins[axis], ends[axis])
        begins = (0, 0)
    given["count_pad"] = False
    if site.op.opcode != "AvgPool":
        del given["count_pad"]
    given["pads"] = (*begins, *_overhang(site, site.type(x).shape[1:3], begins))
    return site.add(site.op.opcode, x, **given)


def _overhang(site: RewriteSite, size: Sequence[int], begins: Ints) -> Ints:
    """How far the last windows reach behind the tensor."""
    kernel = site.attributes["kernel"]
    assert isinstance(kernel, tuple)
    strides, dilations = ints(site, "strides", 2, 1), ints(site, "dilations", 2, 1)
    overhangs = []
    for axis in (0, 1):
        count = site.op.type.shape[1 + axis]
        reach = (count - 1) * strides[axis] + dilations[axis] * (kernel[axis] - 1) + 1
        overhangs.append(max(0, reach - size[axis] - begins[axis]))
    return tuple(overhangs)


def mean_counting_padding(site: RewriteSite) -> int | None:
    """A mean that counts padding: a convolution of each channel with equal weights."""
    if not is_plane(site) or not site.attributes["count_pad"] or site.attributes["ceil"]:
        return None
    if not any(ints(site, "pads", 4, 0)):
        given = {**site.op.attributes, "count_pad": False}
        return site.add("AvgPool", site.operands[0], **given)
    return window_sum(site, site.operands[0], is_mean=True)


def dilated_mean(site: RewriteSite) -> int | None:
    """A mean over windows with gaps and no padding: a convolution of each channel."""
    if not is_plane(site) or site.attributes["ceil"] or set(ints(site, "dilations", 2, 1)) == {1}:
        return None
    if any(ints(site, "pads", 4, 0)):
        return None
    return window_sum(site, site.operands[0], is_mean=True)


def window_sum(site: RewriteSite, x: int, *, is_mean: bool) -> int:
    """The sum or mean over every window, padding as zeros."""
    kernel = site.attributes["kernel"]
    assert isinstance(kernel, tuple)
    channels = site.type(x).shape[-1]
    weights: Array = np.full((*kernel, 1, channels), 1 / prod(kernel) if is_mean else 1.0)
    given = {name: site.attributes[name] for name in ("strides", "pads", "dilations", "layout")}
    literal = site.literal(weights, site.op.type.dtype)
    return site.add("Conv", x, literal, groups=channels, **given)


def norm_of_windows(site: RewriteSite) -> int | None:
    """The p-norm of each window: a power, a convolution with ones, a root."""
    if not is_plane(site) or site.attributes["ceil"]:
        return None
    p, dtype, x = site.attributes["p"], site.op.type.dtype, site.operands[0]
    assert isinstance(p, int)
    size = site.add("Unary", x, op="Abs")
    if p == 1:
        return window_sum(site, size, is_mean=False)
    if p == 2:
        powers = site.add("BinOp", x, x, op="Mul")
        return site.add("Unary", window_sum(site, powers, is_mean=False), op="Sqrt")
    raised = site.add("BinOp", size, site.literal(np.array(float(p)), dtype), op="Pow")
    total = window_sum(site, raised, is_mean=False)
    return site.add("BinOp", total, site.literal(np.array(1 / p), dtype), op="Pow")


def dilated_maximum(site: RewriteSite) -> int | None:
    """The largest element of windows with gaps: of slices, axis by axis."""
    dilations = ints(site, "dilations", 2, 1)
    if not is_plane(site) or site.attributes["ceil"] or set(dilations) == {1}:
        return None
    kernel, strides = site.attributes["kernel"], ints(site, "strides", 2, 1)
    assert isinstance(kernel, tuple)
    begins, ends = pads_of(site, 2)
    x, element = site.operands[0], site.op.type.element
    if element.is_integer:
        return None
    for axis in (0, 1):
        x = pad_axis(site, x, axis + 1, begins[axis], ends[axis], -float(element.largest_finite))
        count = site.op.type.shape[axis + 1]
        parts = [
            _strided_slice(site, x, axis + 1, place * dilations[axis], strides[axis], count)
            for place in range(kernel[axis])
        ]
        x = parts[0]
        for part in parts[1:]:
            x = site.add("BinOp", x, part, op="Max")
    return x


_EVERY = ("Conv", "ConvTranspose", "MaxPool", "AvgPool", "LpPool")
# Windows of every rank to two axes with channels last; transpositions are left around them.
WINDOWS_OVER_TWO_AXES: Rules = {
    "Conv2d": [convolution_of_core_v1],
    "Conv": [channels_last, window_of_line, convolution_of_volumes],
    **{name: [channels_last, window_of_line] for name in ("ConvTranspose", "LpPool")},
    **{name: [channels_last, window_of_line, pool_of_volumes] for name in ("MaxPool", "AvgPool")},
}
DEVICE_WINDOWS: Rules = {
    "Conv": [separate_bias, pointwise, border_of_zeros],
    "AvgPool": [pad_to_whole_windows, mean_counting_padding, dilated_mean],
    "MaxPool": [pad_to_whole_windows, dilated_maximum],
    "LpPool": [pad_to_whole_windows, norm_of_windows],
}

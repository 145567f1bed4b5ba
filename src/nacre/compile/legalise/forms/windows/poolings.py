"""Poolings over two axes as the device has them: no padding that counts, no gaps, no norms."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from nacre.compile.legalise.forms.windows.windows import (
    Ints,
    ints,
    is_plane,
    pad_axis,
    pads_of,
    strided_slice,
)
from nacre.core.rewrite.site import RewriteSite, Rules
from nacre.core.values import Array
from nacre.kernels.windows.sliding import Axis

_MOST_WEIGHTS = 1024  # of a window whose sum is a product with ones
_MOST_PADDING = 512  # of one side: every row of tiles that sees some is written out
_MEANS = {"LpPool": "AvgPool"}  # by which sums over large windows are made


def pad_to_whole_windows(site: RewriteSite) -> int | None:
    """A pooling whose last window hangs over: with padding that takes it in."""
    if not is_plane(site) or not site.attributes["ceil"]:
        return None
    given: dict[str, object] = {**site.op.attributes, "ceil": False}
    x = site.operands[0]
    begins, ends = pads_of(site, 2)
    if site.attributes.get("count_pad") and any((*begins, *ends)):
        if max(*begins, *ends) > _MOST_PADDING and set(ints(site, "dilations", 2, 1)) == {1}:
            return _pool_axes_in_turn(site, x, 0.0)
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
    kernel, dtype = _kernel(site), site.op.type.dtype
    if prod(kernel) > _MOST_WEIGHTS and set(ints(site, "dilations", 2, 1)) == {1}:
        return _sum_by_means(site, x, is_mean=is_mean)
    channels = site.type(x).shape[-1]
    weights: Array = np.full((*kernel, 1, channels), 1 / prod(kernel) if is_mean else 1.0)
    given = {name: site.attributes[name] for name in ("strides", "pads", "dilations", "layout")}
    return site.add("Conv", x, site.literal(weights, dtype), groups=channels, **given)


def _sum_by_means(site: RewriteSite, x: int, *, is_mean: bool) -> int:
    """The same of large windows, for which there are no weights: padding becomes elements."""
    begins, ends = pads_of(site, 2)
    kernel, strides = _kernel(site), ints(site, "strides", 2, 1)
    if max(*begins, *ends) > _MOST_PADDING:
        mean = _pool_axes_in_turn(site, x, 0.0)
    else:
        for axis in (0, 1):
            x = pad_axis(site, x, axis + 1, begins[axis], ends[axis])
        mean = site.add("AvgPool", x, kernel=kernel, strides=strides, layout="NHWC")
    count = site.literal(np.array(float(prod(kernel))), site.op.type.dtype)
    return mean if is_mean else site.add("BinOp", mean, count, op="Mul")


def _pool_axes_in_turn(site: RewriteSite, x: int, padding: float) -> int:
    """One axis padded and pooled, then the other: padding of both at once would be its square."""
    begins, ends = pads_of(site, 2)
    strides, opcode = ints(site, "strides", 2, 1), site.op.opcode
    for at, window in enumerate(_kernel(site)):
        axis = Axis(site.type(x).shape[at + 1], window, begins[at], ends[at], strides[at], 1)
        if not axis.is_plain:
            x = pad_axis(site, x, at + 1, axis.begin, axis.end, padding)
            reach = (site.op.type.shape[at + 1] - 1) * axis.stride + window
            hanging = max(0, reach - site.type(x).shape[at + 1])  # of windows rounded up
            shapes = {
                "kernel": _sizes_along(at, window, 1),
                "strides": _sizes_along(at, axis.stride, 1),
            }
            pads = (0, 0, *_sizes_along(at, hanging, 0))
            x = site.add(_MEANS.get(opcode, opcode), x, layout="NHWC", pads=pads, **shapes)
    return x


def _sizes_along(at: int, size: int, other: int) -> Ints:
    """A size along one of two axes, and what the other one has."""
    return (size, other) if at == 0 else (other, size)


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
        count, reach, size = site.op.type.shape[axis + 1], dilations[axis], 1
        while 4 * size <= kernel[axis]:  # the largest of so many elements, then of twice as many
            length = site.type(x).shape[axis + 1] - reach * size
            pair = [strided_slice(site, x, axis + 1, at, 1, length) for at in (0, reach * size)]
            x, size = site.add("BinOp", *pair, op="Max"), 2 * size
        places = sorted({*range(0, kernel[axis] - size, size), kernel[axis] - size})
        parts = [
            strided_slice(site, x, axis + 1, place * reach, strides[axis], count)
            for place in places
        ]
        x = parts[0]
        for part in parts[1:]:
            x = site.add("BinOp", x, part, op="Max")
    return x


def maximum_beyond_border(site: RewriteSite) -> int | None:
    """The largest element of windows that reach far over the border: padding becomes elements."""
    element = site.op.type.element
    if not _reaches_far(site) or element.is_integer:
        return None
    begins, ends = pads_of(site, 2)
    sides = zip(begins, ends, _kernel(site), strict=True)
    if any(max(begin, end) >= size for begin, end, size in sides):
        return None  # a window of padding alone has no largest element
    return _pool_axes_in_turn(site, site.operands[0], -float(element.largest_finite))


def mean_beyond_border(site: RewriteSite) -> int | None:
    """The mean of windows that reach far over the border: one axis after the other.

    Padding becomes zeros that count, which a factor for each window makes good.
    """
    if not _reaches_far(site) or site.attributes["count_pad"]:
        return None
    begins, ends = pads_of(site, 2)
    strides, x = ints(site, "strides", 2, 1), site.operands[0]
    for at, window in enumerate(_kernel(site)):
        size = site.type(x).shape[at + 1]
        axis = Axis(size, window, begins[at], ends[at], strides[at], 1)
        if not axis.is_plain:
            x = _mean_along(site, x, at, axis)
    return x


def _mean_along(site: RewriteSite, x: int, at: int, axis: Axis) -> int:
    """The mean of windows along one axis."""
    given: dict[str, object] = {"layout": "NHWC", "kernel": _sizes_along(at, axis.window, 1)}
    given["strides"] = _sizes_along(at, axis.stride, 1)
    if max(axis.begin, axis.end) <= _MOST_PADDING:
        pads = (*_sizes_along(at, axis.begin, 0), *_sizes_along(at, axis.end, 0))
        return site.add("AvgPool", x, pads=pads, **given)
    padded = pad_axis(site, x, at + 1, axis.begin, axis.end)
    counts = [axis.elements(number, with_padding=False) for number in range(axis.count)]
    factors: Array = axis.window / np.maximum(np.array(counts, np.float64), 1)
    literal = site.literal(
        factors.reshape(1, *_sizes_along(at, axis.count, 1), 1), site.op.type.dtype
    )
    return site.add("BinOp", site.add("AvgPool", padded, **given), literal, op="Mul")


def _reaches_far(site: RewriteSite) -> bool:
    """Whether windows without gaps begin or end far outside."""
    if not is_plane(site) or site.attributes["ceil"] or set(ints(site, "dilations", 2, 1)) != {1}:
        return False
    return max(ints(site, "pads", 4, 0)) > _MOST_PADDING


def _kernel(site: RewriteSite) -> Ints:
    kernel = site.attributes["kernel"]
    assert isinstance(kernel, tuple)
    return kernel


DEVICE_POOLINGS: Rules = {
    "AvgPool": [pad_to_whole_windows, mean_counting_padding, dilated_mean, mean_beyond_border],
    "MaxPool": [pad_to_whole_windows, dilated_maximum, maximum_beyond_border],
    "LpPool": [pad_to_whole_windows, norm_of_windows],
}

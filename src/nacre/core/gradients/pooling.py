"""Gradients of poolings. Of several largest elements of a window the first one has it all."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import MappingProxyType

from nacre.core.gradients.site import GradientSite, Rule
from nacre.core.gradients.windows import Windows, channels_back, channels_first, windows_of
from nacre.core.gradients.writer import Value, where
from nacre.core.module import Shape
from nacre.kernels.windows.sliding import Axis


def _windows(site: GradientSite) -> Windows:
    return windows_of(site, tuple(site.attributes["kernel"]))


def _is_last(site: GradientSite) -> bool:
    return bool(site.attributes["layout"] == "NHWC")


def _scatter_over_windows(site: GradientSite, value: Value) -> Value:
    """One value a window over all of its elements, summed."""
    is_last, windows = _is_last(site), _windows(site)
    first = channels_first(value, is_last)
    batch, channels, *counts = first.shape
    planes = first.reshape((batch * channels, 1, *counts))
    ones = site.writer.fill(1.0, value.dtype, (1, 1, *windows.sliding.window))
    sums = windows.scatter(planes, ones, 1)
    return channels_back(sums.reshape((batch, channels, *sums.shape[2:])), is_last)


def average(site: GradientSite) -> Value:
    """Every element of a window has its share."""
    windows, g = _windows(site), site.g
    behind = 1 if _is_last(site) else 0
    for at, (axis, over) in enumerate(zip(windows.axes, windows.overhangs, strict=True)):
        if axis.window > 1:
            counts = _counts(site, axis, over)
            g = g / counts.reshape((axis.count, *(1,) * (len(windows.axes) - 1 - at + behind)))
    return _scatter_over_windows(site, g)


def _counts(site: GradientSite, axis: Axis, over: int) -> Value:
    """How many elements each window along an axis counts, at least 1: a convolution of ones."""
    padding = axis.begin, axis.end
    begin, end = (0, 0) if site.attributes["count_pad"] else padding
    size = axis.size + sum(padding) - begin - end
    left = axis.begin + axis.size + over - begin - size  # that the last window still misses
    ones, window = (site.writer.fill(1.0, site.x.dtype, (1, 1, n)) for n in (size, axis.window))
    counts = ones.op(
        "Conv",
        window,
        strides=(axis.stride,),
        dilations=(axis.dilation,),
        pads=(begin, max(0, left)),
    )
    if counts.shape[2] > axis.count:
        counts = counts.op("Slice", starts=(0, 0, 0), ends=(1, 1, axis.count), steps=(1, 1, 1))
    return counts.binop("Max", 1.0)


def norm(site: GradientSite) -> Value:
    """As of the p-norm: x^(p-1) over y^(p-1), with the sign of x, and 0 where y is 0."""
    power = float(site.attributes["p"] - 1)
    sign = site.x.unary("Sign")
    if power == 0:
        return sign * _scatter_over_windows(site, site.g)
    is_zero = site.y.compare("Eq", 0.0)
    shares = where(is_zero, 0.0, site.g * where(is_zero, 1.0, site.y).binop("Pow", -power))
    return sign * site.x.unary("Abs").binop("Pow", power) * _scatter_over_windows(site, shares)


def largest(site: GradientSite) -> Value:
    """To the place of the largest element of each window."""
    is_last, windows = _is_last(site), _windows(site)
    x, g = channels_first(site.x, is_last), channels_first(site.g, is_last)
    around = (0, 0, *windows.begins, 0, 0, *(max(0, over) for over in windows.overhangs))
    padded = x.op("Pad", pads=around, value=float("-inf"))
    planes, elements = prod(x.shape[:2]), prod(padded.shape[2:])
    flat = padded.reshape((planes, elements))
    places = _largest_positions(windows, flat, padded.shape[2:])
    zeros = site.zeros(flat)
    updates = g.reshape(places.shape)
    gradient = zeros.op("ScatterElements", places, updates, axis=1, reduction="add")
    cropped = gradient.reshape(padded.shape).op("Pad", pads=tuple(-width for width in around))
    return channels_back(cropped, is_last)


def _largest_positions(windows: Windows, flat: Value, sizes: Shape) -> Value:
    """[planes, windows]: where in a plane each window's first largest element lies."""
    steps = [prod(sizes[at + 1 :]) for at in range(len(sizes))]
    strides = [step * axis.stride for step, axis in zip(steps, windows.axes, strict=True)]
    reaches = [step * axis.dilation for step, axis in zip(steps, windows.axes, strict=True)]
    starts = _flat_offsets(flat, windows.counts, strides)
    offsets = _flat_offsets(flat, windows.sliding.window, reaches)
    inside, count = offsets.shape[0], starts.shape[0]
    every = (offsets.reshape((inside, 1)) + starts).reshape((inside * count,))
    held = flat.op("GatherAxis", every, axis=1).reshape((flat.shape[0], inside, count))
    best = held.op("ArgMax", axis=1)
    return offsets.op("GatherAxis", best, axis=0) + starts


def _flat_offsets(value: Value, counts: Shape, steps: list[int]) -> Value:
    """Places that lie so far apart along each axis, in one row."""
    along = [value.writer.iota(counts, at) * step for at, step in enumerate(steps)]
    total = along[0]
    for more in along[1:]:
        total = total + more
    return total.reshape((prod(counts),))


POOLING: Mapping[str, Rule] = MappingProxyType(
    {"MaxPool": largest, "AvgPool": average, "LpPool": norm}
)

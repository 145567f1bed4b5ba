"""Gradients of convolutions, all of them by convolutions with channels first.

By its input a convolution has the transposed one of the same weights, and the transposed one the
plain one. By the weights, the gradient slides over the tensor that the windows lie in: batches take
the part of channels, strides that of dilations.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from nacre.core.gradients.site import GradientSite, Rule
from nacre.core.gradients.windows import (
    Windows,
    channels_back,
    channels_first,
    weights_back,
    weights_first,
    windows_of,
)
from nacre.core.gradients.writer import Value
from nacre.core.module import Shape
from nacre.kernels.products.core_products import conv2d_pads
from nacre.kernels.windows.sliding import Axis, Sliding, axis_list


def _is_last(site: GradientSite) -> bool:
    return bool(site.attributes["layout"] == "NHWC")


def _window(site: GradientSite) -> Shape:
    shape = site.operands[1].shape
    return shape[:-2] if _is_last(site) else shape[2:]


def conv_input(site: GradientSite) -> Value:
    """The transposed convolution of g."""
    is_last, groups = _is_last(site), site.attributes["groups"]
    weight = weights_first(site.operands[1], is_last)
    found = windows_of(site, _window(site)).scatter(channels_first(site.g, is_last), weight, groups)
    return channels_back(found, is_last)


def conv_weight(site: GradientSite) -> Value:
    """Of every pair of channels, how g and the windows of x go together."""
    is_last, windows = _is_last(site), windows_of(site, _window(site))
    x, g = channels_first(site.x, is_last), channels_first(site.g, is_last)
    found = correlate(x, g, windows, site.attributes["groups"])
    return weights_back(found, is_last)


def correlate(x: Value, g: Value, windows: Windows, groups: int) -> Value:
    """[O, I / groups, window..]: sums over batches and windows of x [N, I, ..] by g [N, O, ..]."""
    batch, channels, *sizes = x.shape
    inner = channels // groups
    split = x.reshape((batch, groups, inner, *sizes))
    order = (2, 1, 0, *range(3, split.rank))
    moved = split.transpose(order).reshape((inner, groups * batch, *sizes))
    sums = moved.op(
        "Conv",
        g.transpose((1, 0, *range(2, g.rank))),
        strides=windows.sliding.dilations,
        dilations=windows.sliding.strides,
        pads=(*windows.begins, *(max(0, over) for over in windows.overhangs)),
        groups=groups,
    )
    window = (*sums.shape[:2], *windows.sliding.window)
    if sums.shape != window:  # elements that no window reached, at the end
        sums = sums.op("Slice", starts=(0,) * sums.rank, ends=window, steps=(1,) * sums.rank)
    return sums.transpose((1, 0, *range(2, sums.rank)))


def bias(site: GradientSite) -> Value:
    """The sum of g over everything but its channels."""
    channels = site.y.rank - 1 if _is_last(site) else 1
    return site.g.sum(tuple(a for a in range(site.y.rank) if a != channels))


def _transposed_windows(site: GradientSite) -> Windows:
    """The windows of a transposed convolution, which lie in its result."""
    is_last, given = _is_last(site), site.attributes
    sizes = site.y.shape[1:-1] if is_last else site.y.shape[2:]
    counts = site.x.shape[1:-1] if is_last else site.x.shape[2:]
    rank = len(sizes)
    strides, dilations = (axis_list(given, name, rank, 1) for name in ("strides", "dilations"))
    pads = axis_list(given, "pads", 2 * rank, 0)
    parts = zip(sizes, _window(site), pads[:rank], pads[rank:], strides, dilations, strict=True)
    return Windows(Sliding(tuple(Axis(*part) for part in parts), is_last), counts)


def transposed_input(site: GradientSite) -> Value:
    """The convolution of g by the same weights."""
    is_last, windows = _is_last(site), _transposed_windows(site)
    sums = channels_first(site.g, is_last).op(
        "Conv",
        weights_first(site.operands[1], is_last),
        strides=windows.sliding.strides,
        dilations=windows.sliding.dilations,
        pads=(*windows.begins, *(max(0, over) for over in windows.overhangs)),
        groups=site.attributes["groups"],
    )
    wanted = (*sums.shape[:2], *windows.counts)
    if sums.shape != wanted:  # windows that lie wholly in the output padding
        sums = sums.op("Slice", starts=(0,) * sums.rank, ends=wanted, steps=(1,) * sums.rank)
    return channels_back(sums, is_last)


def transposed_weight(site: GradientSite) -> Value:
    """As of a convolution from the result to the operand."""
    is_last = _is_last(site)
    x, g = channels_first(site.x, is_last), channels_first(site.g, is_last)
    found = correlate(g, x, _transposed_windows(site), site.attributes["groups"])
    return weights_back(found, is_last)


def _conv2d_windows(site: GradientSite) -> Windows:
    x, w = (value.shape for value in site.operands)
    pads = conv2d_pads(x, w, site.attributes)
    assert pads is not None  # the verifier has seen to it
    strides = site.attributes["strides"]
    axes = tuple(
        Axis(x[1 + at], w[at], begin, end, strides[at], 1) for at, (begin, end) in enumerate(pads)
    )
    return Windows(Sliding(axes, is_last=True), site.y.shape[1:3])


def conv2d_input(site: GradientSite) -> Value:
    """The transposed convolution of g."""
    weight = weights_first(site.operands[1], is_last=True)
    found = _conv2d_windows(site).scatter(channels_first(site.g, is_last=True), weight, 1)
    return channels_back(found, is_last=True)


def conv2d_filter(site: GradientSite) -> Value:
    """As of `Conv` by its weights."""
    x, g = channels_first(site.x, is_last=True), channels_first(site.g, is_last=True)
    return weights_back(correlate(x, g, _conv2d_windows(site), 1), is_last=True)


CONVOLUTION: Mapping[str, tuple[Rule, ...]] = MappingProxyType(
    {
        "Conv2d": (conv2d_input, conv2d_filter),
        "Conv": (conv_input, conv_weight, bias),
        "ConvTranspose": (transposed_input, transposed_weight, bias),
    }
)

"""What happens to single channels: into the weights beside it, else a 1x1 convolution of each."""

from __future__ import annotations

from math import prod

import numpy as np

from nacre.compile.legalise.forms.elementwise.activations import ElementwiseWriter
from nacre.compile.legalise.forms.windows.windows import pad_into_convolution
from nacre.core.rewrite.inexact import scales
from nacre.core.rewrite.site import RewriteSite, Rules, either_order, per_channel


def batch_norm(site: RewriteSite) -> int | None:
    """X * factor + shift, a number each for every channel."""
    x, *parameters = site.operands
    axis, epsilon = site.attributes["axis"], site.attributes["epsilon"]
    assert isinstance(axis, int)
    assert isinstance(epsilon, float)
    rank = site.op.type.rank
    along = (-1, *(1,) * (rank - 1 - axis % rank))
    known = [site.constant(p) for p in parameters]
    steps = ElementwiseWriter(site)
    if all(array is not None for array in known):
        scale, bias, mean, variance = (a.astype(np.float64) for a in known if a is not None)
        factor = scale / np.sqrt(variance + epsilon)
        shift = bias - mean * factor
        dtype = site.op.type.dtype
        norm = steps.binary("Mul", x, site.literal(factor.reshape(along), dtype))
        return steps.binary("Add", norm, site.literal(shift.reshape(along), dtype))
    scale_, bias_, mean_, variance_ = parameters
    root = steps.unary("Sqrt", steps.binary("Add", variance_, epsilon))
    factor_ = steps.binary("Div", scale_, root)
    channels = site.type(x).shape[axis]
    shape = (channels, *along[1:])
    less = steps.binary("Sub", x, site.reshape(mean_, shape))
    norm = steps.binary("Mul", less, site.reshape(factor_, shape))
    return steps.binary("Add", norm, site.reshape(bias_, shape))


def scale_channels(site: RewriteSite) -> int | None:
    """A plane times a number for each channel, known or computed: a 1x1 convolution of each."""
    if site.attributes["op"] != "Mul" or site.op.type.rank != 4:
        return None
    if site.op.type.element.is_integer:
        return None
    for x, factor in either_order(site.op):
        shape, small = site.type(x).shape, site.type(factor).shape
        channels = shape[-1] if shape else 1
        if shape != site.op.type.shape or small[-1:] != (channels,) or channels == 1:
            continue
        if prod(small) != channels or prod(shape) == channels or site.constant(x) is not None:
            continue
        weights = site.constant(factor)
        if weights is not None:
            kernel = site.literal(weights.reshape(1, 1, 1, channels), site.op.type.dtype)
        else:
            kernel = site.reshape(factor, (1, 1, 1, channels))
        return site.add("Conv", x, kernel, groups=channels, layout="NHWC")
    return None


def divide_by_constant(site: RewriteSite) -> int | None:
    """Division by a constant: a product, where no quotient is lost."""
    if site.attributes["op"] != "Div" or site.op.type.element.is_integer:
        return None
    known = site.constant(site.operands[1])
    if known is None or site.constant(site.operands[0]) is not None:
        return None
    if known.size == 1 or bool((known == 0).any()):
        return None
    factor = site.literal(1 / known.astype(np.float64), site.op.type.dtype)
    return site.add("BinOp", site.operands[0], factor, op="Mul")


def bias_of_computed_filter(site: RewriteSite) -> int | None:
    """A constant added to a convolution whose filter is computed: its bias."""
    if site.attributes["op"] != "Add":
        return None
    split = site.split(site.op)
    conv = None if split is None else site.only(split[0], "Conv")
    if split is None or conv is None or len(conv.operands) > 2 or conv.type != site.op.type:
        return None
    if site.constant(conv.operands[1]) is not None or conv.attributes.get("layout") != "NHWC":
        return None
    numbers = per_channel(split[1], conv.type.shape, conv.type.rank - 1)
    if numbers is None:
        return None
    bias = site.literal(numbers, site.op.type.dtype)
    return site.add("Conv", *conv.operands, bias, **conv.attributes)


CHANNEL_FORMS: Rules = {
    "BatchNorm": [scales.batch_norm, batch_norm],
    "BinOp": [scales.scale, divide_by_constant, scale_channels, bias_of_computed_filter],
    "Conv": [pad_into_convolution],
}

"""What shapes the fused operations on stored integers give, and what does not go together."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.kernels.interface.call import Attributes
from nacre.kernels.interface.fitting import (
    Misfit,
    dims_text,
    expect_least,
    expect_length,
    expect_rank,
    expect_shape,
)
from nacre.kernels.interface.shapes import Dims, broadcast, windows

_TO = ("i8", "u8", "i4", "u4", "i16", "u16", "i32")
_LEAST_SCALE, _MOST_SCALE = 2.0**-149, float(np.finfo(np.float32).max)
_LAYOUTS = ("NCHW", "NHWC")
_BINARY = ("Add", "Sub", "Mul", "Div", "Min", "Max")
_POOLS = ("Max", "Avg")
_LARGEST_SIZE = (1 << 31) - 1  # of a padded axis: memory that nothing else would bound
_MOST_PLACES = 1 << 20  # of a window, which are visited one by one


def spatial_of(attributes: Attributes, rank: int) -> dict[str, Dims]:
    """Strides, pads and dilations, where an empty list stands for ones, zeros and ones."""
    return {
        "strides": tuple(attributes["strides"]) or (1,) * rank,
        "pads": tuple(attributes["pads"]) or (0,) * 2 * rank,
        "dilations": tuple(attributes.get("dilations", ())) or (1,) * rank,
    }


def _expect_word(attributes: Attributes, name: str, words: Sequence[str]) -> None:
    if attributes[name] not in words:
        raise Misfit(f"`{name}` is `{attributes[name]}`, expected one of `{'`, `'.join(words)}`")


def _fit_scale(attributes: Attributes, name: str) -> None:
    """A scale is a positive number of f32; comparisons say no to NaN and to huge integers."""
    found = attributes[name]
    for scale in found if isinstance(found, tuple | list) else (found,):
        if not _LEAST_SCALE <= scale <= _MOST_SCALE:
            raise Misfit(f"`{name}` has {scale}, expected a positive number of f32")


def _fit_result(attributes: Attributes) -> None:
    _expect_word(attributes, "to", _TO)
    _fit_scale(attributes, "y_scale")
    elem = GRAPH_TYPES[attributes["to"]]
    if not elem.lowest <= attributes["y_zero"] <= elem.highest:
        told = f"`y_zero` is {attributes['y_zero']}"
        raise Misfit(f"{told}, expected a value of `{elem.name}`")


def _fit_scales(attributes: Attributes, channels: int) -> None:
    """Of tensor, weights and result; one for all weights, or one for each output channel."""
    _fit_result(attributes)
    _fit_scale(attributes, "x_scale")
    _fit_scale(attributes, "w_scales")
    scales, zeros = len(attributes["w_scales"]), len(attributes["w_zeros"])
    if scales not in (1, channels):
        raise Misfit(f"`w_scales` has {scales} entries, expected 1 or {channels}")
    if zeros not in (0, 1, channels):
        raise Misfit(f"`w_zeros` has {zeros} entries, expected none, 1 or {channels}")


def _spatial(x: Dims, attributes: Attributes) -> dict[str, Dims]:
    rank = len(x)
    found = spatial_of(attributes, rank)
    for name, length, least in (
        ("strides", rank, 1),
        ("pads", 2 * rank, 0),
        ("dilations", rank, 1),
    ):
        expect_length(found[name], length, name)
        expect_least(found[name], least, name)
    for axis, size in enumerate(x):
        padded = size + found["pads"][axis] + found["pads"][axis + rank]
        if padded > _LARGEST_SIZE:
            raise Misfit(f"`pads` make an axis of {padded} elements, expected less than 2^31")
    return found


def _expect_windows(counts: Dims, x: Dims, window: Dims, found: dict[str, Dims]) -> None:
    """Raise a Misfit where not even one window fits along an axis."""
    for axis, count in enumerate(counts):
        if count < 1:
            reach = found["dilations"][axis] * (window[axis] - 1) + 1
            padded = x[axis] + found["pads"][axis] + found["pads"][axis + len(x)]
            told = f"the window reaches over {reach} elements along axis {axis} of the plane"
            raise Misfit(f"{told}, which has {padded} with its pads")


def fit_qconv(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    """The shape of `QConv`."""
    x, w = inputs[0], inputs[1]
    _expect_word(attributes, "layout", _LAYOUTS)
    expect_rank(x, 3, 5, "`input`")
    expect_rank(w, len(x), len(x), "`weight`")
    is_first = attributes["layout"] == "NCHW"
    channels, groups = (x[1] if is_first else x[-1]), attributes["groups"]
    each, outputs = (w[1], w[0]) if is_first else (w[-2], w[-1])
    plane, window = (x[2:], w[2:]) if is_first else (x[1:-1], w[:-2])
    if groups < 1 or outputs % groups:
        raise Misfit(f"`groups` is {groups}, expected a divisor of {outputs} output channels")
    if channels != each * groups:
        told = f"`input` has {channels} channels"
        raise Misfit(f"{told}, expected {each * groups}: {groups} groups of {each}")
    found = _spatial(plane, attributes)
    if len(inputs) > 2:
        expect_shape(inputs[2], (outputs,), "`bias`")
    _fit_scales(attributes, outputs)
    counts = windows(plane, window, found["pads"], found["strides"], found["dilations"])
    _expect_windows(counts, plane, window, found)
    return (x[0], outputs, *counts) if is_first else (x[0], *counts, outputs)


def fit_qlinear(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    """The shape of `QLinear`."""
    x, w = inputs[0], inputs[1]
    expect_rank(x, 1, name="`input`")
    expect_rank(w, 2, 2, "`weight`")
    if x[-1] != w[1]:
        raise Misfit(f"`input` has the shape {dims_text(x)}, expected {w[1]} along its last axis")
    if len(inputs) > 2:
        expect_shape(inputs[2], w[:1], "`bias`")
    _fit_scales(attributes, w[0])
    return (*x[:-1], w[0])


def fit_qbinop(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    """The shape of `QBinOp`."""
    a, b = inputs
    _expect_word(attributes, "op", _BINARY)
    _fit_result(attributes)
    _fit_scale(attributes, "a_scale")
    _fit_scale(attributes, "b_scale")
    result = broadcast(a, b)
    if result is None:
        raise Misfit(f"the shapes {dims_text(a)} and {dims_text(b)} do not stretch to a common one")
    return result


def fit_qpool(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    """The shape of `QPool`. With `ceil` a last window may reach out, but must begin inside."""
    (x,) = inputs
    _expect_word(attributes, "op", _POOLS)
    _expect_word(attributes, "layout", _LAYOUTS)
    expect_rank(x, 3, 5, "`input`")
    is_first = attributes["layout"] == "NCHW"
    plane, kernel = (x[2:] if is_first else x[1:-1]), tuple(attributes["kernel"])
    expect_length(kernel, len(plane), "kernel")
    expect_least(kernel, 1, "kernel")
    if prod(kernel) > _MOST_PLACES:
        raise Misfit(f"`kernel` has {prod(kernel)} places, expected at most {_MOST_PLACES}")
    found = _spatial(plane, attributes)
    for width, window in zip(found["pads"], kernel * 2, strict=True):
        if width >= window:
            raise Misfit(f"`pads` has {width}, expected less than the window, {window}")
    _fit_result(attributes)
    _fit_scale(attributes, "x_scale")
    counts = _pool_counts(plane, kernel, found, is_ceil=attributes["ceil"])
    _expect_windows(counts, plane, kernel, found)
    return (*x[:2], *counts) if is_first else (x[0], *counts, x[-1])


def _pool_counts(plane: Dims, kernel: Dims, found: dict[str, Dims], is_ceil: bool) -> Dims:
    pads, strides = found["pads"], found["strides"]
    counts = windows(plane, kernel, pads, strides, found["dilations"])
    if not is_ceil:
        return counts
    wide = []
    for axis, (size, count) in enumerate(zip(plane, counts, strict=True)):
        begin, stride = pads[axis], strides[axis]
        rest = (size + begin + pads[axis + len(plane)] - kernel[axis]) % stride
        wide.append(count + (rest > 0 and count * stride < size + begin))
    return tuple(wide)

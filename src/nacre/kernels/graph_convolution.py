"""Convolutions that graphs have, in either layout.

A padded element takes part as 0 * w, as in onnxruntime. Channels first, every window of an image
becomes a column, and the product with the weights is the result as it lies in memory. Channels
last, and wherever sums are ordered, every window becomes a row, and sums run over the window and
then over the channels: so ordered results do not depend on the layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from nacre.kernels.call import Array, Attributes, Call, Fault, Primitive, Run, Work
from nacre.kernels.fitting import Fitting, Misfit, expect_rank, expect_shape
from nacre.kernels.graph_conv_planes import Convolve, convolve_planes
from nacre.kernels.graph_conv_transpose import CONV_TRANSPOSE
from nacre.kernels.graph_products import (
    Factors,
    dense,
    factoring,
    fill_with_sums,
    multiplicands,
    settle,
    sums_dtype,
    swift,
)
from nacre.kernels.graph_sliding import (
    Sliding,
    fitting_counts,
    fitting_groups,
    fitting_windows,
    has_channels_last,
    joined,
    spatial_of,
)
from nacre.kernels.patches import ChannelwiseProduct, PatchProduct, Windows
from nacre.kernels.runs import present
from nacre.kernels.shapes import Dims

# Of one matrix of columns; larger ones are made block by block, for they should stay in the cache.
_COLUMN_BYTES = 1 << 20


@dataclass(frozen=True)
class _Geometry:
    """The numbers of one convolution."""

    sliding: Sliding
    batch: int
    channels: int
    outputs: int
    groups: int

    @property
    def depth(self) -> int:
        """How many products a sum has."""
        return prod(self.sliding.window) * (self.channels // self.groups)

    @property
    def is_channelwise(self) -> bool:
        """Whether every channel is convolved by itself."""
        return self.groups > 1 and self.groups == self.channels

    @property
    def is_pointwise(self) -> bool:
        """Whether every window is one element, and every element has one: X is its own columns."""
        use = self.sliding
        return set(use.window) == set(use.strides) == {1} and not use.is_padded

    @property
    def windows(self) -> Windows:
        """The windows over X padded, with channels last."""
        use = self.sliding
        padded = (self.batch, *use.padded, self.channels)
        y = (self.batch, *use.counts, self.outputs)
        return Windows(padded, use.window, y, use.strides, use.dilations, self.groups)

    def padded(self, x: Array, is_last: bool) -> Array:
        """X, whose channels are where they should be, with its padding."""
        use = self.sliding
        if not use.is_padded:
            return dense(x)
        values = np.zeros(joined(self.batch, use.padded, self.channels, is_last), x.dtype)
        inner = tuple(slice(axis.begin, axis.begin + axis.size) for axis in use.axes)
        every = slice(None)
        values[(every, *inner) if is_last else (every, every, *inner)] = x
        return values


def _geometry(call: Call) -> _Geometry:
    x, w = call.input(0).shape, call.input(1).shape
    sliding = _windows(x, w, call.attributes)
    channels, outputs = (x[-1], w[-1]) if sliding.is_last else (x[1], w[0])
    return _Geometry(sliding, x[0], channels, outputs, call.attributes["groups"])


def _bind(call: Call) -> Run:
    use, y_type, is_ordered = _geometry(call), call.output, call.ordered
    if use.sliding.is_last or is_ordered:
        convolve = _channels_last(use)
    elif use.is_channelwise:
        convolve = convolve_planes(use.sliding, use.batch, use.channels, use.outputs)
    elif use.is_pointwise:
        convolve = _by_elements(use)
    else:
        convolve = _by_columns(use)
    ready = factoring(y_type.elem, use.depth, is_ordered)
    if use.is_channelwise:
        ready = multiplicands(y_type.elem)
    dtype = sums_dtype(y_type.elem)

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        factors = ready(present(inputs[0]), present(inputs[1]))
        bias = inputs[2] if len(inputs) > 2 else None

        def fill(sums: Array) -> None:
            convolve(factors, sums, None if bias is None else bias.astype(dtype))
            settle(sums, is_ordered)

        fill_with_sums(outputs[0], y_type, fill)
        return None

    return swift(run)


def _channels_last(use: _Geometry) -> Convolve:
    """Every window a row; channels first are moved to the end and back."""
    windows, is_last = use.windows, use.sliding.is_last
    convolve = (ChannelwiseProduct if use.is_channelwise else PatchProduct)(windows)
    whole = tuple(slice(0, size) for size in (*windows.window, windows.channels))

    def run(factors: Factors, sums: Array, bias: Array | None) -> None:
        def multiplied(a: Array, b: Array) -> Array:
            out = np.empty((*a.shape[:-1], b.shape[-1]), sums.dtype)
            factors.multiply(a, b, out)
            return out

        x, w = factors.a, factors.b
        if not is_last:
            x, w = np.moveaxis(x, 1, -1), np.moveaxis(w, (0, 1), (-1, -2))
        total = convolve(use.padded(x, is_last=True), w, whole, multiplied)
        if bias is not None:
            np.add(total, bias, out=total)
        sums[...] = total if is_last else np.moveaxis(total, -1, 1)

    return run


def _by_elements(use: _Geometry) -> Convolve:
    """Every window one element: X itself is the matrix of columns."""
    groups, inner, width = use.groups, use.channels // use.groups, use.outputs // use.groups
    places = prod(use.sliding.counts)

    def run(factors: Factors, sums: Array, bias: Array | None) -> None:
        columns = dense(factors.a).reshape(use.batch, groups, inner, places)
        target = sums.reshape(use.batch, groups, width, places)
        factors.multiply(factors.b.reshape(groups, width, inner), columns, target)
        if bias is not None:
            np.add(target, bias.reshape(groups, width, 1), out=target)

    return run


def _by_columns(use: _Geometry) -> Convolve:
    """Every window of an image a column: the product lies as the result does."""
    groups, places = use.groups, use.sliding.counts
    shape, steps = _columns(use)
    tail = prod(places[1:])
    width = use.outputs // groups

    def run(factors: Factors, sums: Array, bias: Array | None) -> None:
        x = use.padded(factors.a, is_last=False)
        weights = factors.b.reshape(groups, width, use.depth)
        strides = [step * x.itemsize for step in steps]
        view = np.ndarray(shape, x.dtype, x, strides=strides)
        rows = max(1, _COLUMN_BYTES // (groups * use.depth * tail * x.itemsize))
        planes = sums.reshape(use.batch, groups, width, prod(places))
        column = None if bias is None else bias.reshape(groups, width, 1)
        for image, start in product(range(use.batch), range(0, places[0], rows)):
            stop = min(start + rows, places[0])
            taken = view[image][..., start:stop, *(slice(None),) * (len(places) - 1)]
            # Where a window is one element, this is X itself.
            columns = np.ascontiguousarray(taken).reshape(groups, use.depth, -1)
            target = planes[image, :, :, start * tail : stop * tail]
            factors.multiply(weights, columns, target)
            if column is not None:
                np.add(target, column, out=target)

    return run


def _columns(use: _Geometry) -> tuple[Dims, Dims]:
    """Shape and steps, in elements, of [N, Cin, window.., out..] over X padded."""
    padded = (use.channels, *use.sliding.padded)
    steps = tuple(prod(padded[axis + 1 :]) for axis in range(len(padded)))
    pairs = tuple(zip(steps[1:], use.sliding.axes, strict=True))
    within = tuple(step * axis.dilation for step, axis in pairs)
    across = tuple(step * axis.stride for step, axis in pairs)
    shape = (use.batch, use.channels, *use.sliding.window, *use.sliding.counts)
    return shape, (prod(padded), steps[0], *within, *across)


def _windows(x: Dims, weight: Dims, attributes: Attributes) -> Sliding:
    window = weight[:-2] if has_channels_last(attributes) else weight[2:]
    return fitting_windows(x, window, attributes)


def fit_convolution(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    """The shape of a convolution; `Conv` says what the layouts of weights are."""
    x, weight = inputs[0], inputs[1]
    spatial_of(x, attributes)
    expect_rank(weight, len(x), len(x), "`weight`")
    is_last = has_channels_last(attributes)
    outputs, per_group = (weight[-1], weight[-2]) if is_last else weight[:2]
    groups = fitting_groups(x, weight, per_group, attributes)
    if outputs % groups:
        found = f"`weight` has {outputs} output channels"
        raise Misfit(f"{found}, expected a multiple of `groups`, which is {groups}")
    sliding = _windows(x, weight, attributes)
    if len(inputs) > 2:
        expect_shape(inputs[2], (outputs,), "`bias`")
    return joined(x[0], fitting_counts(sliding), outputs, is_last)


def _work(call: Call) -> Work:
    return Work(macs=call.output.count * _geometry(call).depth)


GRAPH_CONVOLUTION: tuple[Primitive, ...] = (
    Primitive("core.Conv", _bind, Fitting(fit_convolution), _work),
    CONV_TRANSPOSE,
)

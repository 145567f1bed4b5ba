"""The transposed convolution: every element of X spreads a window of weights over Y.

Along an axis Y has (size - 1) * stride + dilation * (window - 1) + 1 elements, less the pads, plus
`output_padding` at the end. One place of the window after the other is a matrix product over the
channels, whose result is added where that place falls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

import numpy as np

from nacre.kernels.interface.call import Array, Attributes, Call, Fault, Primitive, Run, Work
from nacre.kernels.interface.fitting import Fitting, Misfit, expect_shape
from nacre.kernels.interface.runs import present, unbuffered
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.movement.views import Index
from nacre.kernels.products.graph_products import (
    Factors,
    dense,
    factoring,
    fill_with_sums,
    settle,
    sums_dtype,
)
from nacre.kernels.windows.sliding import (
    Axis,
    Sliding,
    axis_list,
    fitting_groups,
    fitting_weight,
    has_channels_last,
    join_shape,
    weight_windows,
)


def _counts(sliding: Sliding, attributes: Attributes) -> Dims:
    """The spatial shape of Y."""
    extra = axis_list(attributes, "output_padding", len(sliding.axes), 0)
    for axis, more in zip(sliding.axes, extra, strict=True):
        if more >= max(axis.stride, axis.dilation):
            wanted = f"less than the stride {axis.stride} or the dilation {axis.dilation}"
            raise Misfit(f"`output_padding` has {more}, expected {wanted}")
    counts = tuple(map(_count, sliding.axes, extra))
    if min(counts) < 1:
        raise Misfit(f"`pads` leave {min(counts)} elements of an axis, expected at least 1")
    return counts


def _count(axis: Axis, more: int) -> int:
    whole = (axis.size - 1) * axis.stride + axis.dilation * (axis.window - 1) + 1
    return whole - axis.begin - axis.end + more


def _landing_slices(axis: Axis, place: int, count: int) -> tuple[slice, slice] | None:
    """Where along Y a place of the window falls, and from which elements of X; None: nowhere."""
    shift = place * axis.dilation - axis.begin  # element i falls on i * stride + shift
    first = max(0, -(shift // axis.stride))
    last = min(axis.size - 1, (count - 1 - shift) // axis.stride)
    if first > last:
        return None
    target = slice(first * axis.stride + shift, last * axis.stride + shift + 1, axis.stride)
    return target, slice(first, last + 1)


@dataclass(frozen=True)
class _TransposedConvolution:
    """The numbers of one use, and where each place of the window falls."""

    sliding: Sliding
    batch: int
    channels: int
    outputs: int
    groups: int
    counts: Dims  # the spatial shape of Y

    @property
    def size(self) -> Dims:
        """The spatial shape of X."""
        return tuple(axis.size for axis in self.sliding.axes)

    @cached_property
    def steps(self) -> list[tuple[int, Index, Index]]:
        """Which place of the window falls where on Y, and from where in X."""
        every = slice(None)
        places = product(*(range(axis.window) for axis in self.sliding.axes))
        found = []
        for index, place in enumerate(places):
            falls = [
                fall for fall in map(_landing_slices, self.sliding.axes, place, self.counts) if fall
            ]
            if len(falls) == len(place):
                targets, sources = zip(*falls, strict=True)
                found.append((index, (every, every, *targets), (every, every, *sources)))
        return found

    def add(self, factors: Factors, total: Array) -> None:
        """Add what every element of X spreads to Y [N, Cout, spatial..]."""
        x, w = factors.a, factors.b
        if self.sliding.is_last:
            x, w = np.moveaxis(x, -1, 1), np.moveaxis(w, (-1, -2), (0, 1))
        inner, outer = self.channels // self.groups, self.outputs // self.groups
        columns = dense(x).reshape(self.batch, self.groups, inner, -1)
        weights = w.reshape(self.groups, inner, outer, -1)
        spread = np.empty((self.batch, self.groups, outer, columns.shape[-1]), total.dtype)
        planes = spread.reshape(self.batch, self.outputs, *self.size)
        for index, target, source in self.steps:
            matrix = weights[..., index].swapaxes(1, 2)
            factors.multiply(np.ascontiguousarray(matrix), columns, spread)
            held = total[target]
            np.add(held, planes[source], out=held)


def _bind(call: Call) -> Run:
    x_type, y_type, is_ordered = call.input(0), call.output, call.ordered
    sliding = weight_windows(x_type.shape, call.input(1).shape, call.attributes)
    channels, outputs = (t.shape[-1 if sliding.is_last else 1] for t in (x_type, y_type))
    counts = y_type.shape[1:-1] if sliding.is_last else y_type.shape[2:]
    groups = call.attributes["groups"]
    use = _TransposedConvolution(sliding, x_type.shape[0], channels, outputs, groups, counts)
    ready = factoring(x_type.elem, channels // groups, is_ordered)
    dtype = sums_dtype(x_type.elem)
    first = (use.batch, outputs, *counts)

    def run(inputs: Sequence[Array | None], results: Sequence[Array]) -> Fault | None:
        factors = ready(present(inputs[0]), present(inputs[1]))
        bias = inputs[2] if len(inputs) > 2 else None

        def fill(sums: Array) -> None:
            total = np.empty(first, dtype) if sliding.is_last else sums
            total.fill(0)
            use.add(factors, total)
            if bias is not None:
                total += bias.astype(dtype).reshape(-1, *(1,) * len(counts))
            if sliding.is_last:
                sums[...] = np.moveaxis(total, 1, -1)
            settle(sums, is_ordered)

        fill_with_sums(results[0], y_type, fill)
        return None

    return unbuffered(run)


def fit_conv_transpose(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    """The shape of a transposed convolution."""
    x, weight = inputs[0], inputs[1]
    channels, width = fitting_weight(x, weight, attributes)
    groups = attributes["groups"]
    if groups < 1 or channels % groups:
        raise Misfit(f"`groups` is {groups}, expected a divisor of {channels} input channels")
    fitting_groups(x, weight, channels // groups, attributes)
    sliding = weight_windows(x, weight, attributes)
    if len(inputs) > 2:
        expect_shape(inputs[2], (width * groups,), "`bias`")
    return join_shape(x[0], _counts(sliding, attributes), width * groups, sliding.is_last)


def _work(call: Call) -> Work:
    # Every element of X meets the weights of its channel.
    w, is_last = call.input(1).shape, has_channels_last(call.attributes)
    return Work(macs=call.input(0).count * prod(w[:-1] if is_last else w[1:]))


CONV_TRANSPOSE = Primitive("core.ConvTranspose", _bind, Fitting(fit_conv_transpose), _work)

"""Convolutions that graphs have, in either layout.

A padded element takes part as 0 * w, as in onnxruntime. Channels first, every window of an image
becomes a column, and the product with the weights is the result as it lies in memory. Channels
last, and wherever sums are ordered, every window becomes a row, and sums run over the window and
then over the channels: so ordered results do not depend on the layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nacre.kernels.interface.call import (
    Array,
    Attributes,
    Call,
    Constant,
    Fault,
    Primitive,
    Run,
    Work,
)
from nacre.kernels.interface.fitting import Fitting, Misfit, expect_shape
from nacre.kernels.interface.runs import present, unbuffered
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.products.graph_products import (
    Factors,
    factoring,
    fill_with_sums,
    multiplicands,
    settle,
    sums_dtype,
    widening,
)
from nacre.kernels.windows.graph_conv_columns import Geometry, by_columns, by_elements, by_rows
from nacre.kernels.windows.graph_conv_last import convolve_last, suits_channels_last
from nacre.kernels.windows.graph_conv_planes import Convolve, convolve_planes
from nacre.kernels.windows.graph_conv_runs import convolve_groups, runs_for
from nacre.kernels.windows.graph_conv_transpose import CONV_TRANSPOSE
from nacre.kernels.windows.patches import ChannelwiseProduct, PatchProduct
from nacre.kernels.windows.sliding import (
    fitting_counts,
    fitting_groups,
    fitting_weight,
    join_shape,
    weight_windows,
)


def geometry(call: Call) -> Geometry:
    """The numbers of a call."""
    x, w = call.input(0).shape, call.input(1).shape
    sliding = weight_windows(x, w, call.attributes)
    channels, outputs = (x[-1], w[-1]) if sliding.is_last else (x[1], w[0])
    return Geometry(sliding, x[0], channels, outputs, call.attributes["groups"])


def is_arranged(call: Call) -> bool:
    """Whether a convolution gives the same bits in both layouts, and is no slower with either."""
    known, x = call.known.get(1), call.input(0)
    if x.elem.name != "f32" or call.ordered or known is None:
        return False
    use = geometry(call)
    if use.groups > 1 and not use.is_channelwise:
        return runs_for(use) is not None
    return suits_channels_last(use)


def bind_arranged(call: Call, finish: Run | None = None, *, is_moved: bool = False) -> Run:
    """The same, then something done to each element of the result.

    X that is moved has its channels first, although the layout has them last.
    """
    use, weights = geometry(call), call.known[1].stored
    is_last = use.sliding.is_last
    if use.groups > 1 and not use.is_channelwise:
        rows = np.moveaxis(weights, (-1, -2), (0, 1)) if is_last else weights
        has_bias = call.has_input(2)
        found = convolve_groups(use, rows, has_bias=has_bias, finish=finish, is_moved=is_moved)
        assert found is not None
        return found
    weights = weights if is_last else np.moveaxis(weights, (1, 0), (-2, -1))
    return convolve_last(use, weights, call.known.get(2), finish, is_moved=is_moved)


def _bind(call: Call) -> Run:
    if is_arranged(call):
        return bind_arranged(call)
    use, y_type, is_ordered = geometry(call), call.output, call.ordered
    known = call.known.get(1)
    is_last = use.sliding.is_last or (use.has_long_rows and not use.is_pointwise)
    is_by_rows = not (is_last or is_ordered or use.is_channelwise)
    if known is not None and not is_by_rows and known.is_narrow(call.input(1).dtype):
        return _bind_whole(call, known)
    # Weights with channels last have no row for each sum.
    known = None if is_last else known
    elem, has_bias = call.output.elem, call.has_input(2)
    is_channelwise = use.is_channelwise
    if is_last or is_ordered:
        convolve = _channels_last(use)
    elif is_channelwise:
        weights = None if known is None else widening(elem)(known.stored)
        numbers = use.batch, use.channels, use.outputs
        convolve = convolve_planes(use.sliding, *numbers, sums_dtype(elem), weights)
    else:
        convolve = _by_product(use)
    ready = (
        multiplicands(elem)
        if is_channelwise
        else factoring(elem, use.depth, is_ordered, known, is_narrow=not has_bias)
    )
    dtype = sums_dtype(elem)

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        factors = ready(present(inputs[0]), present(inputs[1]))
        bias = present(inputs[2]).astype(dtype, copy=False) if has_bias else None

        def fill(sums: Array) -> None:
            convolve(factors, sums, bias)
            settle(sums, is_ordered)

        fill_with_sums(outputs[0], y_type, fill, factors.sums)
        return None

    return unbuffered(run)


def _bind_whole(call: Call, known: Constant) -> Run:
    """A run that is given the values of weights in the place of those that are stored."""
    weights = known.values(call.input(1).dtype)
    run = _bind(replace(call, known={**call.known, 1: Constant(weights)}))

    def run_whole(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        return run([inputs[0], weights, *inputs[2:]], outputs)

    return run_whole


def _by_product(use: Geometry) -> Convolve:
    """The way to the product of matrices that a convolution is."""
    if use.is_pointwise:
        return by_elements(use)
    return by_rows(use) if use.has_few_weights else by_columns(use)


def _channels_last(use: Geometry) -> Convolve:
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


def fit_convolution(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    """The shape of a convolution; `Conv` says what the layouts of weights are."""
    x, weight = inputs[0], inputs[1]
    outputs, per_group = fitting_weight(x, weight, attributes)
    groups = fitting_groups(x, weight, per_group, attributes)
    if outputs % groups:
        found = f"`weight` has {outputs} output channels"
        raise Misfit(f"{found}, expected a multiple of `groups`, which is {groups}")
    sliding = weight_windows(x, weight, attributes)
    if len(inputs) > 2:
        expect_shape(inputs[2], (outputs,), "`bias`")
    return join_shape(x[0], fitting_counts(sliding), outputs, sliding.is_last)


def _work(call: Call) -> Work:
    return Work(macs=call.output.count * geometry(call).depth)


GRAPH_CONVOLUTION: tuple[Primitive, ...] = (
    Primitive("core.Conv", _bind, Fitting(fit_convolution), _work, takes_known=True),
    CONV_TRANSPOSE,
)

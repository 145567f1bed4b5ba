"""Sums of products that graphs have, convolutions aside."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from nacre.kernels.call import Array, Attributes, Call, Fault, Primitive, Run, Work
from nacre.kernels.fitting import Fitting, Misfit, expect_rank, expect_shape, shown
from nacre.kernels.graph_attention import ATTENTION
from nacre.kernels.graph_einsum import EINSUM
from nacre.kernels.graph_products import factoring, fill_with_sums, settle, sums_dtype
from nacre.kernels.runs import present, quiet
from nacre.kernels.shapes import Dims


def _bind_linear(call: Call) -> Run:
    x, y_type = call.input(0), call.output
    rows, depth, width = prod(x.shape[:-1]), x.shape[-1], y_type.shape[-1]
    ready = factoring(x.elem, depth, call.ordered)
    dtype, is_ordered = sums_dtype(x.elem), call.ordered

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        factors = ready(present(inputs[0]), present(inputs[1]))
        bias = inputs[2] if len(inputs) > 2 else None

        def fill(sums: Array) -> None:
            matrix = sums.reshape(rows, width)
            # BLAS reads the weights across as quickly as along: they are not copied.
            factors.multiply(factors.a.reshape(rows, depth), factors.b.T, matrix)
            if bias is not None:
                np.add(matrix, bias.astype(dtype), out=matrix)
            settle(matrix, is_ordered)

        fill_with_sums(outputs[0], y_type, fill)
        return None

    return quiet(run)


def fit_linear(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    """The shape of rows [.., in] by weights [out, in]."""
    x, weight = inputs[0], inputs[1]
    expect_rank(x, 1)
    expect_rank(weight, 2, 2, "`weight`")
    if weight[1] != x[-1]:
        found = f"`weight` has the shape {shown(weight)} and the input {shown(x)}"
        raise Misfit(f"{found}, expected the same last dimension")
    if len(inputs) > 2:
        expect_shape(inputs[2], weight[:1], "`bias`")
    return (*x[:-1], weight[0])


def _linear_work(call: Call) -> Work:
    return Work(macs=call.output.count * call.input(0).shape[-1])


GRAPH_LINEAR: tuple[Primitive, ...] = (
    Primitive("core.Linear", _bind_linear, Fitting(fit_linear), _linear_work),
    EINSUM,
    ATTENTION,
)

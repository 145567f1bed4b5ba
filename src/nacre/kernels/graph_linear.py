"""Sums of products that graphs have, convolutions aside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from nacre.kernels.call import Array, Attributes, Call, Fault, Known, Primitive, Run, Work
from nacre.kernels.fitting import Fitting, Misfit, expect_rank, expect_shape, shown
from nacre.kernels.graph_attention import ATTENTION
from nacre.kernels.graph_einsum import EINSUM
from nacre.kernels.graph_products import (
    Extent,
    factoring,
    fill_with_sums,
    settle,
    store_sums,
    sums_dtype,
)
from nacre.kernels.graph_runs import into_dense
from nacre.kernels.products import F32_EXACT, exact_product
from nacre.kernels.runs import present, quiet
from nacre.kernels.scratch import scratch
from nacre.kernels.shapes import Dims

# Of the weights that are turned to floats at a time: they are read once, out of the cache.
_BLOCK_BYTES = 1 << 20


def _bind_linear(call: Call) -> Run:
    if call.output.elem.is_integer:
        return _bind_integers(call)
    x, y_type = call.input(0), call.output
    rows, depth, width = prod(x.shape[:-1]), x.shape[-1], y_type.shape[-1]
    ready = factoring(x.elem, depth, call.ordered, call.known.get(1))
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


@dataclass(frozen=True, eq=False)
class _Weights:
    """Integer weights [out, in] as `stored + shift`, in the type in which they are kept."""

    stored: Array
    shift: int
    extent: Extent  # of what is stored


def _kept(known: Known) -> _Weights:
    """What is kept of weights that are known: floats where they are hot, else bytes if possible."""
    values = known.values
    extent = Extent.of(values)
    if known.is_hot and extent.reach <= F32_EXACT:
        return _Weights(values.astype(np.float32), 0, extent)
    least, most = int(values.min()), int(values.max())
    if values.itemsize == 1 or most - least > 255:
        return _Weights(values, 0, extent)
    shift = 0 if least >= -128 and most <= 127 else least + 128
    stored = np.empty(values.shape, np.int8)
    np.subtract(values, shift, out=stored, casting="unsafe")
    return _Weights(stored, shift, Extent.of(stored) if shift else extent)


def _bind_integers(call: Call) -> Run:
    """Exact sums by products of floats. Weights become floats block by block, or once for all."""
    elem, known = call.output.elem, call.known.get(1)
    depth, width = call.input(0).shape[-1], call.output.shape[-1]
    kept = None if known is None else _kept(known)

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        x, given = present(inputs[0]).reshape(-1, depth), present(inputs[1])
        weights = kept or _Weights(given, 0, Extent.of(given))
        chosen = weights.extent.plan(x, depth)
        columns, dtype = x.T.astype(chosen.dtype, order="C"), chosen.dtype
        more = weights.shift * x.sum(axis=1, dtype=np.int64)[None] if weights.shift else None
        if len(inputs) > 2:
            bias = present(inputs[2])[:, None].astype(np.int64)
            more = bias if more is None else bias + more  # [out, rows]; without a bias, [1, rows]
        y = outputs[0].reshape(len(x), width).T
        is_ready = weights.stored.dtype == dtype
        step = width if is_ready else max(1, _BLOCK_BYTES // (depth * dtype.itemsize))
        for start in range(0, width, step):
            some = slice(start, start + step)
            block = weights.stored[some]
            if not is_ready:
                room = scratch("weights", block.shape, dtype)
                np.copyto(room, block, casting="unsafe")
                block = room
            sums = exact_product(block, columns, chosen)
            if more is not None:
                sums = sums.astype(np.int64) + (more[some] if len(more) == width else more)
            store_sums(sums, elem, y[some])
        return None

    return into_dense(run)


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
    Primitive("core.Linear", _bind_linear, Fitting(fit_linear), _linear_work, takes_known=True),
    EINSUM,
    ATTENTION,
)

"""Sums of products that graphs have, convolutions aside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import prod

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
from nacre.kernels.interface.fitting import Fitting, Misfit, dims_text, expect_rank, expect_shape
from nacre.kernels.interface.fixed import FixableRun, FixedCall, Scratch
from nacre.kernels.interface.graph_runs import with_dense_output
from nacre.kernels.interface.runs import present, quiet, quietly
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.numbers.numbers import widen_to_f32
from nacre.kernels.products.attention import ATTENTION
from nacre.kernels.products.einsum import EINSUM
from nacre.kernels.products.graph_products import (
    IntegerWeights,
    factoring,
    fill_with_sums,
    settle,
    store_sums,
    sums_dtype,
    widening,
)
from nacre.kernels.products.products import exact_product

# Of the weights that are turned to floats at a time: they are read once, out of the cache.
_BLOCK_BYTES = 1 << 20
# What is stored is moved by less than this: a float of any plan holds it, and the sum, exactly.
_FARTHEST = 1 << 16
# Up to so many products in all BLAS may read weights as they lie, and then sums in parts.
_FEW_PRODUCTS = 1 << 20
# The weights that a single row may have in f64.
_FEW_WEIGHTS = 1 << 16


def _bind_linear(call: Call) -> Run:
    if call.output.elem.is_integer:
        return _bind_integers(call)
    x, y_type = call.input(0), call.output
    rows, depth, width = prod(x.shape[:-1]), x.shape[-1], y_type.shape[-1]
    dtype, is_ordered = sums_dtype(x.elem), call.ordered
    known = call.known.get(1)
    if not is_ordered:
        if rows == 1 and depth * width <= _FEW_WEIGHTS and dtype == np.float32:
            return _bind_row(call)
        if known is not None and rows * depth * width <= _FEW_PRODUCTS:
            known = Constant(np.array(quietly(widening(x.elem), known.stored), order="F"))
    ready = factoring(x.elem, depth, is_ordered, known)

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        factors = ready(present(inputs[0]), present(inputs[1]))
        bias = inputs[2] if len(inputs) > 2 else None

        def fill(sums: Array) -> None:
            matrix = sums.reshape(rows, width)
            # BLAS packs large weights, which takes no longer across than along. Small ones it
            # reads as they lie: those are known in the order in which it sums from first to last.
            factors.multiply(factors.a.reshape(rows, depth), factors.b.T, matrix)
            if bias is not None:
                np.add(matrix, bias.astype(dtype, copy=False), out=matrix)
            settle(matrix, is_ordered)

        fill_with_sums(outputs[0], y_type, fill)
        return None

    return quiet(run)


def _bind_row(call: Call) -> Run:
    """A single row by few weights, in f64: how BLAS splits such sums differs between machines."""
    known, y_type = call.known.get(1), call.output
    kept = None if known is None else quietly(_to_double, known.stored)  # NaN of any kind

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        weights = _to_double(present(inputs[1])) if kept is None else kept
        sums = np.matmul(weights, _to_double(present(inputs[0])).reshape(-1))
        bias = inputs[2] if len(inputs) > 2 else None

        def fill(row: Array) -> None:
            flat = row.reshape(-1)
            np.copyto(flat, sums, casting="same_kind")
            if bias is not None:
                np.add(flat, bias.astype(np.float32, copy=False), out=flat)

        fill_with_sums(outputs[0], y_type, fill)
        return None

    def calls(
        inputs: Sequence[Array | None], outputs: Sequence[Array], room: Scratch
    ) -> Iterator[FixedCall]:
        assert kept is not None
        width, depth = kept.shape
        x, sums = (room(use, (n,), kept.dtype) for use, n in (("left", depth), ("sums", width)))
        flat = outputs[0].reshape(-1)
        yield partial(np.copyto, x, present(inputs[0]).reshape(-1))
        yield partial(np.dot, kept, x, sums)
        yield partial(np.copyto, flat, sums, casting="same_kind")
        if len(inputs) > 2:
            yield partial(np.add, flat, present(inputs[2]), flat)

    is_plain = kept is not None and y_type.elem.name == "f32"
    return quiet(FixableRun(calls, run) if is_plain else run)


def _to_double(values: Array) -> Array:
    return widen_to_f32(values).astype(np.float64)


def _prepare_weights(known: Constant, depth: int) -> IntegerWeights:
    """What is kept of weights that are known: widened where they may be, else bytes if possible."""
    found = IntegerWeights.of(known, depth)
    stored = found.stored
    if found.zero is not None or stored.itemsize == 1 or stored.dtype.kind == "f":
        return found
    least, most = int(stored.min()), int(stored.max())
    if most - least > 255:
        return found
    shift = 0 if least >= -128 and most <= 127 else least + 128
    if abs(shift) > _FARTHEST:
        return found
    narrow = np.empty(stored.shape, np.int8)
    np.subtract(stored, shift, out=narrow, casting="unsafe")
    return IntegerWeights(narrow, np.array(-shift) if shift else None, found.extent)


def _bind_integers(call: Call) -> Run:
    """Exact sums by products of floats. Weights become floats block by block, or once for all."""
    elem, known = call.output.elem, call.known.get(1)
    depth, width = call.input(0).shape[-1], call.output.shape[-1]
    kept = None if known is None else _prepare_weights(known, depth)

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        x = present(inputs[0]).reshape(-1, depth)
        weights = kept or IntegerWeights.of(Constant(present(inputs[1])), depth)
        chosen, more = weights.extent.plan(x, depth), list[Array]()  # what is added to [out, rows]
        if chosen.result == np.float32 and weights.may_centre_late(x):
            zero, weights = present(weights.zero), replace(weights, zero=None)
            more.append(-zero.astype(np.int64).reshape(-1, 1) * x.sum(axis=1, dtype=np.int64))
        if len(inputs) > 2:
            more.append(present(inputs[2])[:, None].astype(np.int64))
        columns, dtype = x.T.astype(chosen.dtype, order="C"), chosen.dtype
        y = outputs[0].reshape(len(x), width).T
        is_ready = weights.stored.dtype == dtype
        step = width if is_ready else max(1, _BLOCK_BYTES // (depth * dtype.itemsize))
        for start in range(0, width, step):
            some = slice(start, start + step)
            sums = exact_product(weights.values(some, dtype), columns, chosen)
            for one in more:
                sums = sums.astype(np.int64) + (one[some] if len(one) == width else one)
            store_sums(sums, elem, y[some])
        return None

    return with_dense_output(run)


def fit_linear(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    """The shape of rows [.., in] by weights [out, in]."""
    x, weight = inputs[0], inputs[1]
    expect_rank(x, 1)
    expect_rank(weight, 2, 2, "`weight`")
    if weight[1] != x[-1]:
        found = f"`weight` has the shape {dims_text(weight)} and the input {dims_text(x)}"
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

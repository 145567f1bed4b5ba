"""Scaled dot product attention: softmax(q k' * scale + mask) v.

Scores are made for a block of rows at a time, and the softmax divides after the product with v,
where there is less to divide. A row that may look at nothing, all of its scores being minus
infinity, gives zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from nacre.kernels.interface import shapes
from nacre.kernels.interface.call import Array, Attributes, Call, Fault, Primitive, Run, Work
from nacre.kernels.interface.fitting import Fitting, Misfit, dims_text, expect_rank
from nacre.kernels.interface.runs import present, unbuffered
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.products.graph_products import (
    Multiply,
    factoring,
    fill_with_sums,
    settle,
    sums_dtype,
)
from nacre.kernels.reductions.graph_normalization import expect_finite
from nacre.kernels.reductions.normalization_rows import scalar_of_type
from nacre.kernels.reductions.reductions import float_sum
from nacre.kernels.windows.patches import blocks

# Of one block of scores: they are passed over several times, so they should stay in the cache.
_SCORE_BYTES = 1 << 20


@dataclass(frozen=True, eq=False)
class _Operands:
    """The tensors of one run, in the type that they are computed in."""

    q: Array  # scaled
    k: Array  # [.., E, S]
    v: Array
    mask: Array | None  # stretched to [.., L, S]
    multiply: Multiply
    stops_early: bool  # what a causal row does not look at may be left out


@dataclass(frozen=True, eq=False)
class _Attention:
    """What is known before the values."""

    keys: int
    is_causal: bool
    is_ordered: bool

    def rows(self, given: _Operands, box: tuple[slice, ...]) -> Array:
        """The result for some rows of some batches."""
        batch, rows = box[:-1], box[-1]
        stop = min(rows.stop, self.keys) if given.stops_early else self.keys
        q, k = _take_batch(given.q, batch)[..., rows, :], _take_batch(given.k, batch)[..., :stop]
        v = _take_batch(given.v, batch)[..., :stop, :]
        scores = _product(q, k, given.multiply)
        if given.mask is not None:
            _apply_mask(scores, given.mask[(*batch, rows, slice(0, stop))])
        if self.is_causal:
            behind = np.arange(stop) > np.arange(rows.start, rows.stop)[:, None]
            np.copyto(scores, -np.inf, where=behind)
        total = self._exponentials(scores)
        found = _product(scores, v, given.multiply)
        return np.divide(found, total, out=found)

    def _exponentials(self, scores: Array) -> Array:
        """Turn scores into powers of e, in their place, and sum them along rows."""
        top = np.maximum.reduce(scores, axis=-1, keepdims=True)
        is_blind = top == -np.inf
        top[is_blind] = 0
        np.subtract(scores, top, out=scores)
        # In order, by way of f64: the double functions of all libraries round to the same f32.
        np.exp(
            scores.astype(np.float64) if self.is_ordered else scores, out=scores, casting="unsafe"
        )
        total = float_sum(scores, (scores.ndim - 1,), self.is_ordered)
        total[is_blind] = 1
        return total


def _take_batch(values: Array, batch: tuple[slice, ...]) -> Array:
    """Some of the batches of a tensor, whose own batch axes may be fewer, or of size 1."""
    own = values.shape[:-2]
    tail = batch[len(batch) - len(own) :]
    return values[tuple(slice(None) if n == 1 else s for n, s in zip(own, tail, strict=True))]


def _product(a: Array, b: Array, multiply: Multiply) -> Array:
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    out = np.empty((*batch, a.shape[-2], b.shape[-1]), a.dtype)
    multiply(a, b, out)
    return out


def _apply_mask(scores: Array, mask: Array) -> None:
    if mask.dtype == np.bool_:
        np.copyto(scores, -np.inf, where=~mask)
    else:
        np.add(scores, mask, out=scores)


def _bind(call: Call) -> Run:
    q, k, y_type = call.input(0), call.input(1), call.output
    dtype, is_ordered = sums_dtype(q.elem), call.ordered
    scale = scalar_of_type(call.attributes["scale"] or 1 / sqrt(q.shape[-1]), dtype)
    is_causal = bool(call.attributes["causal"])
    use = _Attention(k.shape[-2], is_causal, is_ordered)
    ready = factoring(q.elem, 1, is_ordered)
    broadcast_to = _mask_broadcaster(call, dtype)
    score_rows = max(1, _SCORE_BYTES // (dtype.itemsize * use.keys))
    boxes = blocks(y_type.shape[:-1], score_rows)

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        qk = ready(present(inputs[0]), present(inputs[1]))
        v = ready(present(inputs[2]), qk.b).a
        mask = broadcast_to(inputs[3] if len(inputs) > 3 else None)
        given = _Operands(
            q=qk.a * scale,
            k=qk.b.swapaxes(-1, -2),
            v=v,
            mask=mask,
            multiply=qk.multiply,
            # Nothing times 0 is left of a finite number, but NaN would be of an infinite one.
            stops_early=is_causal and bool(np.isfinite(v).all()),
        )

        def fill(sums: Array) -> None:
            for box in boxes:
                sums[box] = use.rows(given, box)
            settle(sums, is_ordered)

        fill_with_sums(outputs[0], y_type, fill)
        return None

    return unbuffered(run)


def _mask_broadcaster(
    call: Call, dtype: np.dtype[np.generic]
) -> Callable[[Array | None], Array | None]:
    """How a mask becomes one entry for each score, which takes no memory."""
    scores = (*call.output.shape[:-1], call.input(1).shape[-2])

    def broadcast_to(mask: Array | None) -> Array | None:
        if mask is None:
            return None
        return np.broadcast_to(mask if mask.dtype == np.bool_ else mask.astype(dtype), scores)

    return broadcast_to


def fit_attention(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    """The shape of q [.., L, E] by k [.., S, E] by v [.., S, V]."""
    q, k, v = inputs[:3]
    for dims, name in ((q, "`q`"), (k, "`k`"), (v, "`v`")):
        expect_rank(dims, 2, None, name)
    if q[-1] != k[-1]:
        raise Misfit(
            f"`q` has the shape {dims_text(q)} and `k` {dims_text(k)}, expected the same last axis"
        )
    if k[-2] != v[-2]:
        raise Misfit(
            f"`k` has the shape {dims_text(k)} and `v` {dims_text(v)}, expected as many keys"
        )
    batch = shapes.broadcast(q[:-2], k[:-2])
    batch = None if batch is None else shapes.broadcast(batch, v[:-2])
    if batch is None:
        found = f"`q`, `k` and `v` have the batches {dims_text(q[:-2])}, {dims_text(k[:-2])}"
        raise Misfit(f"{found} and {dims_text(v[:-2])}, expected some that broadcast")
    scores = (*batch, q[-2], k[-2])
    if len(inputs) > 3 and not shapes.broadcasts_to(inputs[3], scores):
        found = f"`mask` has the shape {dims_text(inputs[3])}"
        raise Misfit(f"{found}, expected one that broadcasts to {dims_text(scores)}")
    expect_finite(attributes, "scale")
    return (*batch, q[-2], v[-1])


def _work(call: Call) -> Work:
    *_, width = call.output.shape
    scores = call.output.count // width * call.input(1).shape[-2]
    return Work(macs=scores * (call.input(0).shape[-1] + width), elements=scores, each=8)


ATTENTION = Primitive("core.Attention", _bind, Fitting(fit_attention), _work)

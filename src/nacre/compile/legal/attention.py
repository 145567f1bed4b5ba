"""`Attention` as products, a mask that is added, and a softmax."""

from __future__ import annotations

from math import sqrt

import numpy as np

from nacre.compile.legal.activations import Steps
from nacre.compile.legal.rounds import Forms
from nacre.core.inference.rewriting import Site
from nacre.core.module import Shape
from nacre.core.values import Array

# What is added to a score that is hidden: the largest number of 16 bits. Its exponential is 0
# unless the scores of a row lie further apart than that.
_HIDDEN = -65504.0


def attention(site: Site) -> int | None:
    """Softmax(q * scale k' + mask) v; rows that may look at nothing are zeros."""
    q, k, v, *mask = site.operands
    scale = site.attributes["scale"]
    assert isinstance(scale, float)
    steps = Steps(site)
    shape = site.type(q).shape
    scaled = steps.binary("Mul", q, scale or 1 / sqrt(shape[-1]))
    rank = site.type(k).rank
    turned = site.add("Transpose", k, permutation=(*range(rank - 2), rank - 1, rank - 2))
    scores = site.add("MatMul", scaled, turned)
    seen = _known_mask(site, mask, site.type(scores).shape)
    sighted: int | None = None
    if seen is not None:
        scores = _hidden(site, scores, seen)
        sighted = _known_rows(site, seen)
    if mask and site.constant(mask[0]) is None:
        scores, sighted = _masked(site, scores, mask[0], sighted)
    weights = site.add("Softmax", scores, axis=site.type(scores).rank - 1)
    made = site.add("MatMul", weights, v)
    return made if sighted is None else steps.binary("Mul", made, sighted)


def _known_mask(site: Site, mask: list[int], scores: Shape) -> Array | None:
    """What is known before the run of what may be looked at: True, or a number to be added."""
    known = site.constant(mask[0]) if mask else None
    if not site.attributes["causal"]:
        return known
    rows, keys = scores[-2:]
    causal: Array = np.arange(keys) <= np.arange(rows)[:, None]
    if known is None:
        return causal
    if known.dtype == np.bool_:
        return causal & known
    return np.where(causal, known, -np.inf)


def _hidden(site: Site, scores: int, seen: Array) -> int:
    if seen.dtype == np.bool_:
        added = np.where(seen, 0.0, _HIDDEN)
    else:
        added = np.maximum(seen.astype(np.float64), _HIDDEN)
    if not added.any():
        return scores
    return site.add("BinOp", scores, site.literal(added, site.op.type.dtype), op="Add")


def _known_rows(site: Site, seen: Array) -> int | None:
    """1 for rows that may look at something, 0 for others; None where there are no others."""
    is_seen = seen if seen.dtype == np.bool_ else ~np.isneginf(seen.astype(np.float64))
    rows = is_seen.any(axis=-1, keepdims=True) if is_seen.ndim else np.array(is_seen)
    if bool(rows.all()):
        return None
    return site.literal(np.asarray(rows, np.float32), site.op.type.dtype)


def _masked(site: Site, scores: int, mask: int, sighted: int | None) -> tuple[int, int | None]:
    """Scores with a mask that is computed."""
    steps = Steps(site)
    if site.type(mask).dtype != "bool":
        return steps.binary("Add", scores, mask), sighted
    seen = site.add("Cast", mask, to=site.op.type.dtype)
    hidden = steps.binary("Mul", steps.binary("Sub", seen, 1.0), -_HIDDEN)
    rank = site.type(seen).rank
    if rank == 0:
        return steps.binary("Add", scores, hidden), sighted
    rows = site.add("Reduce", seen, op="Max", axes=(rank - 1,), keepdims=True)
    both = rows if sighted is None else steps.binary("Mul", rows, sighted)
    return steps.binary("Add", scores, hidden), both


ATTENTION_FORMS: Forms = {"Attention": [attention]}

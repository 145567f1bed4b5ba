"""`Attention` as products, a mask that is added, and a softmax."""

from __future__ import annotations

from math import sqrt

import numpy as np

from nacre.compile.legalise.forms.elementwise.activations import ElementwiseWriter
from nacre.core.module import Shape
from nacre.core.rewrite.site import RewriteSite, Rules
from nacre.core.values import Array


def attention(site: RewriteSite) -> int | None:
    """Softmax(q * scale k' + mask) v.

    What is hidden has minus infinity added to it, and the softmax of nothing but that is 0.
    """
    q, k, v, *mask = site.operands
    scale = site.attributes["scale"]
    assert isinstance(scale, float)
    steps = ElementwiseWriter(site)
    shape = site.type(q).shape
    scaled = steps.binary("Mul", q, scale or 1 / sqrt(shape[-1]))
    rank = site.type(k).rank
    keys = site.add("Transpose", k, permutation=(*range(rank - 2), rank - 1, rank - 2))
    scores = site.add("MatMul", scaled, keys)
    added = _score_bias(site, mask[0] if mask else None, site.type(scores).shape)
    if added is not None:
        scores = steps.binary("Add", scores, added)
    weights = site.add("Softmax", scores, axis=site.type(scores).rank - 1)
    return site.add("MatMul", weights, v)


def _score_bias(site: RewriteSite, mask: int | None, scores: Shape) -> int | None:
    """What is added to the scores; None where that is 0 throughout."""
    causal = _causal(scores) if site.attributes["causal"] else np.zeros(())
    known = np.zeros(()) if mask is None else site.constant(mask)
    dtype = site.op.type.dtype
    if known is not None:
        total = _numbers(known) + causal
        return site.literal(total, dtype) if total.any() else None
    assert mask is not None
    if site.type(mask).dtype == "bool":
        mask = site.add("Log", site.add("Cast", mask, to=dtype))  # 0 of true, -inf of false
    return (
        ElementwiseWriter(site).binary("Add", mask, site.literal(causal, dtype))
        if causal.any()
        else mask
    )


def _causal(scores: Shape) -> Array:
    rows, keys = scores[-2:]
    return np.where(np.arange(keys) <= np.arange(rows)[:, None], 0.0, -np.inf)


def _numbers(mask: Array) -> Array:
    if mask.dtype == np.bool_:
        return np.where(mask, 0.0, -np.inf)
    return mask.astype(np.float64)


ATTENTION_FORMS: Rules = {"Attention": [attention]}

"""Gradients of `Attention`, by its softmax computed again."""

from __future__ import annotations

from math import sqrt

from nacre.core.gradients.products import transpose
from nacre.core.gradients.site import GradientSite, Rule, sum_to
from nacre.core.gradients.writer import Value, where

_MASK = 3


def _scale(site: GradientSite) -> float:
    return float(site.attributes["scale"] or 1 / sqrt(site.x.shape[-1]))


def _weights(site: GradientSite) -> Value:
    """The softmax: how much each row takes of each key."""
    q, k = site.operands[:2]
    scores = q.op("MatMul", transpose(k)) * _scale(site)
    below = float("-inf")
    if len(site.operands) > _MASK:
        mask = site.operands[_MASK]
        if mask.dtype == "bool":
            scores = where(mask, scores, below)
        else:
            scores = scores + (mask if mask.dtype == q.dtype else mask.op("Cast", to=q.dtype))
    if site.attributes["causal"]:
        square = (q.shape[-2], k.shape[-2])
        rows, columns = (site.writer.iota(square, axis) for axis in (0, 1))
        scores = where(columns.compare("Le", rows), scores, below)
    last = scores.rank - 1
    if len(site.operands) <= _MASK:
        return scores.op("Softmax", axis=last)
    # A row that may look at nothing takes nothing.
    top = scores.op("Reduce", op="Max", axes=(last,), keepdims=True)
    is_blind = top.compare("Eq", below)
    powers = (scores - where(is_blind, 0.0, top)).exp()
    return powers / where(is_blind, 1.0, powers.sum((last,), keepdims=True))


def _by_scores(site: GradientSite) -> Value:
    """The gradient by what goes into the softmax."""
    weights = _weights(site)
    weighted = weights * site.g.op("MatMul", transpose(site.operands[2]))
    return weighted - weights * weighted.sum((weighted.rank - 1,), keepdims=True)


def _sum_to_operand(site: GradientSite, value: Value) -> Value:
    return sum_to(value, value.shape, site.operand.shape)


def _by_queries(site: GradientSite) -> Value:
    return _sum_to_operand(site, _by_scores(site).op("MatMul", site.operands[1]) * _scale(site))


def _by_keys(site: GradientSite) -> Value:
    return _sum_to_operand(
        site, transpose(_by_scores(site)).op("MatMul", site.operands[0]) * _scale(site)
    )


def _by_values(site: GradientSite) -> Value:
    return _sum_to_operand(site, transpose(_weights(site)).op("MatMul", site.g))


def _by_mask(site: GradientSite) -> Value:
    found = _sum_to_operand(site, _by_scores(site))
    return found if found.dtype == site.operand.dtype else found.op("Cast", to=site.operand.dtype)


ATTENTION: tuple[Rule, ...] = (_by_queries, _by_keys, _by_values, _by_mask)

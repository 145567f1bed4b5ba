"""Reductions and the softmax that models spell out."""

from __future__ import annotations

from math import isclose

import numpy as np

from nacre.core.rewrite.recover.parts import shape_with_ones, skip_views
from nacre.core.rewrite.site import RewriteSite, Rules, either_order


def reduction_keeping_axes(site: RewriteSite) -> int | None:
    """A reduction whose axes a view puts back: one that keeps them."""
    reduction = site.maker(site.operands[0], "Mean", "Sum", "Reduce")
    if reduction is None or reduction.attributes.get("keepdims"):
        return None
    shape = site.type(reduction.operands[0]).shape
    axes = tuple(axis % len(shape) for axis in reduction.attributes["axes"])
    if not axes or site.op.type.shape != shape_with_ones(shape, axes):
        return None
    return site.add(
        reduction.opcode, reduction.operands[0], **{**reduction.attributes, "keepdims": True}
    )


def mean_of_sum(site: RewriteSite) -> int | None:
    """A sum times 1 / count, or over the count: a mean."""
    kind = site.attributes["op"]
    if kind not in ("Mul", "Div"):
        return None
    for value, other in either_order(site.op):
        total, number = site.maker(value, "Sum"), site.number(other)
        if total is None or number is None or site.op.type != total.type:
            continue
        shape = site.type(total.operands[0]).shape
        axes = total.attributes["axes"] or tuple(range(len(shape)))
        count = float(np.prod([shape[axis] for axis in axes]))
        if isclose(number, 1 / count if kind == "Mul" else count, rel_tol=1e-6):
            return site.add("Mean", total.operands[0], **total.attributes)
    return None


def softmax(site: RewriteSite) -> int | None:
    """Exp(x - max) / Sum(Exp(x - max)), or without the maximum, which plays no part."""
    if site.attributes["op"] != "Div":
        return None
    powers, total = site.operands
    sums = site.maker(skip_views(site, total), "Sum")
    exp = site.maker(powers, "Exp")
    if sums is None or exp is None or sums.operands[0] != powers:
        return None
    if len(sums.attributes["axes"]) != 1:
        return None
    axis = sums.attributes["axes"][0] % exp.type.rank
    if site.type(total).shape != shape_with_ones(site.type(powers).shape, (axis,)):
        return None
    return site.add("Softmax", _without_maximum(site, exp.operands[0], axis), axis=axis)


def _without_maximum(site: RewriteSite, value: int, axis: int) -> int:
    """X of x - max(x), whatever else holds the maximum from below."""
    less = site.maker(value, "BinOp", op="Sub")
    if less is None:
        return value
    x, most = less.operands[0], skip_views(site, less.operands[1])
    split = site.split(site.maker(most, "BinOp", op="Max"))
    if split is not None and bool(np.isneginf(split[1].astype(np.float64)).all()):
        most = skip_views(site, split[0])
    top = site.maker(most, "Reduce", op="Max")
    is_top = top is not None and top.operands[0] == x
    rank = site.type(x).rank
    is_along = top is not None and [a % rank for a in top.attributes["axes"]] == [axis]
    return x if is_top and is_along else value


KEPT_AXES: Rules = {"Reshape": [reduction_keeping_axes], "ExpandDims": [reduction_keeping_axes]}
REDUCTIONS: Rules = {"BinOp": [mean_of_sum, softmax]}

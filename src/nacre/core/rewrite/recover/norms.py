"""Normalisations that models spell out."""

from __future__ import annotations

from math import inf

import numpy as np

from nacre.core.module import CoreOperation
from nacre.core.rewrite.site import RewriteSite


def division(site: RewriteSite) -> int | None:
    """(x - mean) / sqrt(variance + epsilon), or x / sqrt(mean square + epsilon)."""
    kind = site.attributes["op"]
    if kind == "Div":
        root = site.maker(site.operands[1], "Unary", op="Sqrt")
        return None if root is None else _normalised(site, site.operands[0], root)
    if kind == "Mul":
        for value, other in (site.operands, site.operands[::-1]):
            root = site.maker(other, "Unary", op="Rsqrt") or _reciprocal(site, other)
            if root is not None:
                return _normalised(site, value, root)
    return None


def _reciprocal(site: RewriteSite, value: int) -> CoreOperation | None:
    """The root of 1 / sqrt(..)."""
    over = site.maker(value, "Unary", op="Reciprocal")
    return None if over is None else site.maker(over.operands[0], "Unary", op="Sqrt")


def _normalised(site: RewriteSite, value: int, root: CoreOperation) -> int | None:
    total = site.maker(root.operands[0], "BinOp", op="Add")
    split = None if total is None else site.split(total)
    if split is None or split[1].size != 1:
        return None
    mean, epsilon = split[0], float(np.ravel(split[1])[0])
    spread = site.maker(mean, "Mean", keepdims=True)
    if spread is None or _square(site, spread.operands[0]) != value:
        return None
    axes = _last_axes(spread)
    if axes is None or site.type(value) != site.op.type or not 0 <= epsilon < inf:
        return None
    x = _centred(site, value, spread)
    if x is not None:
        return site.add("LayerNorm", x, axis=axes, epsilon=epsilon)
    return site.add("RmsNorm", value, axis=axes, epsilon=epsilon)


def _square(site: RewriteSite, value: int) -> int | None:
    """What is squared."""
    power = site.maker(value, "BinOp")
    if power is None:
        return None
    a, b = power.operands
    if power.attributes["op"] == "Mul" and a == b:
        return a
    return a if power.attributes["op"] == "Pow" and site.number(b) == 2.0 else None


def _centred(site: RewriteSite, value: int, spread: CoreOperation) -> int | None:
    """X of x - Mean(x) over the same axes."""
    less = site.maker(value, "BinOp", op="Sub")
    mean = None if less is None else site.maker(less.operands[1], "Mean", keepdims=True)
    if less is None or mean is None or mean.operands[0] != less.operands[0]:
        return None
    is_same = set(_axes(mean)) == set(_axes(spread))
    return less.operands[0] if is_same else None


def _axes(mean: CoreOperation) -> tuple[int, ...]:
    rank = mean.type.rank
    return tuple(a % rank for a in mean.attributes["axes"])


def _last_axes(mean: CoreOperation) -> int | None:
    """The first of the axes, if they are all from there to the last."""
    axes = sorted(_axes(mean))
    return axes[0] if axes and axes == list(range(axes[0], mean.type.rank)) else None


def scale(site: RewriteSite) -> int | None:
    """A norm times a constant, and plus one: its scale and bias."""
    kind = site.attributes["op"]
    split = site.split(site.op) if kind in ("Mul", "Add") else None
    if split is None:
        return None
    value, constant = split
    norm = site.only(value, "LayerNorm", "RmsNorm")
    if norm is None or site.op.type != norm.type:
        return None
    inner = norm.type.shape[norm.attributes["axis"] :]
    if constant.ndim > len(inner) and any(d != 1 for d in constant.shape[: -len(inner)]):
        return None
    squeezed = constant.reshape(constant.shape[-len(inner) :]) if constant.ndim else constant
    whole = site.literal(np.broadcast_to(squeezed, inner), norm.type.dtype)
    x, *given = norm.operands
    if kind == "Mul" and not given:
        return site.add(norm.opcode, x, whole, **norm.attributes)
    if kind == "Add" and norm.opcode == "LayerNorm" and len(given) < 2:
        one = site.literal(np.ones(inner), norm.type.dtype)
        return site.add("LayerNorm", x, *(given or [one]), whole, **norm.attributes)
    return None

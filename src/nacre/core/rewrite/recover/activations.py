"""Activations that models spell out."""

from __future__ import annotations

from math import isclose

from nacre.core.rewrite.recover.gelu import gelu
from nacre.core.rewrite.site import RewriteSite, Rules, either_order

_MIRRORED = {"Gt": "Lt", "Ge": "Le", "Lt": "Gt", "Le": "Ge"}


def silu(site: RewriteSite) -> int | None:
    """X * Sigmoid(x)."""
    for x, other in either_order(site.op) if site.attributes["op"] == "Mul" else ():
        gate = site.maker(other, "Unary", op="Sigmoid")
        if gate is not None and gate.operands[0] == x:
            return site.add("Silu", x)
    return None


def hard_swish(site: RewriteSite) -> int | None:
    """X * HardSigmoid(x) with the slope 1 / 6, or x * Clip(x + 3, 0, 6) / 6 in either order."""
    kind = site.attributes["op"]
    for x, other in either_order(site.op) if kind == "Mul" else ():
        if _is_hard_sigmoid(site, other, x) or _bounded_sum(site, _over_six(site, other)) == x:
            return site.add("HardSwish", x)
    if kind == "Div" and site.number(site.operands[1]) == 6.0:
        inner = site.only(site.operands[0], "BinOp", op="Mul")
        for x, other in either_order(inner):
            if _bounded_sum(site, other) == x:
                return site.add("HardSwish", x)
    return None


def _is_hard_sigmoid(site: RewriteSite, value: int, x: int) -> bool:
    gate = site.maker(value, "HardSigmoid", beta=0.5)
    if gate is None or gate.operands[0] != x:
        return False
    return isclose(gate.attributes.get("alpha", 0.2), 1 / 6, rel_tol=1e-4)


def _over_six(site: RewriteSite, value: int) -> int | None:
    """What is divided by 6."""
    by = site.maker(value, "BinOp", op="Div")
    if by is not None:
        return by.operands[0] if site.number(by.operands[1]) == 6.0 else None
    times = site.maker(value, "BinOp", op="Mul")
    return None if times is None else site.beside(times, 1 / 6, rel_tol=1e-6)


def _bounded_sum(site: RewriteSite, value: int | None) -> int | None:
    """X of Clip(x + 3, 0, 6)."""
    bounded = None if value is None else site.maker(value, "Clip", min=0.0, max=6.0)
    total = None if bounded is None else site.maker(bounded.operands[0], "BinOp", op="Add")
    return None if total is None else site.beside(total, 3.0, rel_tol=1e-5)


def relu(site: RewriteSite) -> int | None:
    """X where it is above 0, else 0, as `to_onnx` writes it, from either side."""
    condition, a, b = site.operands
    compared = site.maker(condition, "Compare")
    if compared is None or site.op.type.element.kind != "float":
        return None
    left, right = compared.operands
    kind = str(compared.attributes["op"])
    if site.number(left) == 0:  # 0 < x: x > 0
        left, right, kind = right, left, _MIRRORED.get(kind, "")
    x, zero, opcode = (a, b, "Relu") if kind in ("Gt", "Ge") else (b, a, "ReluNan")
    is_relu = left == x and site.number(right) == 0 and site.number(zero) == 0
    return site.add(opcode, x) if is_relu and kind in _MIRRORED else None


ACTIVATIONS: Rules = {"BinOp": [silu, hard_swish, gelu], "Where": [relu]}

"""Activations that models spell out."""

from __future__ import annotations

from math import isclose

from nacre.core.rewrite.recover.exponentials import (
    sigmoid_by_power,
    sigmoid_by_reciprocal,
    sigmoid_or_silu,
    silu,
    softplus,
    softplus_of_parts,
)
from nacre.core.rewrite.recover.expressions import (
    factors_of,
    is_float,
    scale_of_product,
    without_bounds,
)
from nacre.core.rewrite.recover.gelu import gelu
from nacre.core.rewrite.site import RewriteSite, Rules

_MIRRORED = {"Gt": "Lt", "Ge": "Le", "Lt": "Gt", "Le": "Ge"}


def hard_swish(site: RewriteSite) -> int | None:
    """X * HardSigmoid(x) with the slope 1 / 6, or x * Clip(x + 3, 0, 6) / 6 in whatever order.

    A `HardSigmoid` alone stays as it is spelt: its sum may yet go into the bias before it.
    """
    if site.attributes["op"] not in ("Mul", "Div") or not is_float(site):
        return None
    for gate in factors_of(site, site.op):
        x, scale = _argument_of_hard_gate(site, gate)
        if x is None:
            continue
        number = scale_of_product(site, site.op, (x, gate))
        if number is not None and isclose(number * scale, 1 / 6, rel_tol=_precision(site)):
            return site.add("HardSwish", x)
    return None


def _argument_of_hard_gate(site: RewriteSite, gate: int) -> tuple[int | None, float]:
    """X of HardSigmoid(x), and its slope; x of Clip(x + 3, 0, 6), and 1."""
    function = site.maker(gate, "HardSigmoid", beta=0.5)
    if function is not None:
        slope = float(function.attributes.get("alpha", 0.2))
        is_sixth = isclose(slope, 1 / 6, rel_tol=_precision(site))
        return (function.operands[0] if is_sixth else None), 1 / 6
    value, bounds = without_bounds(site, gate)
    total = site.maker(value, "BinOp", op="Add") if bounds == (0.0, 6.0) else None
    return (None if total is None else site.beside(total, 3.0, rel_tol=1e-5)), 1.0


def _precision(site: RewriteSite) -> float:
    """How near a number must be that is no sum of powers of two."""
    return 1e-4 if site.op.type.element.bits > 16 else 2.0**-11


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


ACTIVATIONS: Rules = {
    "BinOp": [sigmoid_or_silu, sigmoid_by_power, silu, softplus_of_parts, hard_swish, gelu],
    "Unary": [sigmoid_by_reciprocal, softplus],
    "Log": [softplus],
    "Where": [relu],
}

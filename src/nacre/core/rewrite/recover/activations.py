"""Activations that models spell out."""

from __future__ import annotations

from math import isclose, sqrt

from nacre.core.rewrite.site import RewriteSite


def product(site: RewriteSite) -> int | None:
    """A product that is an activation: `Silu`, `HardSwish`, `Gelu`."""
    if site.attributes["op"] == "Mul":
        return _silu(site) or _hard_swish(site) or _gelu(site)
    if site.attributes["op"] == "Div":
        return _hard_swish_last(site)
    return None


def _silu(site: RewriteSite) -> int | None:
    """X * Sigmoid(x)."""
    for x, other in (site.operands, site.operands[::-1]):
        gate = site.maker(other, "Unary", op="Sigmoid")
        if gate is not None and gate.operands[0] == x:
            return site.add("Silu", x)
    return None


def _hard_swish(site: RewriteSite) -> int | None:
    """X * HardSigmoid(x) with the slope 1 / 6, or x * (Clip(x + 3, 0, 6) / 6)."""
    for x, other in (site.operands, site.operands[::-1]):
        gate = site.maker(other, "HardSigmoid")
        if gate is not None and gate.operands[0] == x and _is_sixth(site, other):
            return site.add("HardSwish", x)
        over = site.maker(other, "BinOp")
        if over is not None and over.attributes["op"] in ("Div", "Mul"):
            held = _over_six(site, other)
            if held is not None and _held_sum(site, held) == x:
                return site.add("HardSwish", x)
    return None


def _is_sixth(site: RewriteSite, value: int) -> bool:
    gate = site.maker(value)
    assert gate is not None
    alpha = gate.attributes.get("alpha", 0.2)
    return isclose(alpha, 1 / 6, rel_tol=1e-4) and gate.attributes.get("beta", 0.5) == 0.5


def _hard_swish_last(site: RewriteSite) -> int | None:
    """(x * Clip(x + 3, 0, 6)) / 6."""
    if site.number(site.operands[1]) != 6.0:
        return None
    inner = site.only(site.operands[0], "BinOp", op="Mul")
    if inner is None:
        return None
    for x, other in (inner.operands, inner.operands[::-1]):
        if _held_sum(site, other) == x:
            return site.add("HardSwish", x)
    return None


def _over_six(site: RewriteSite, value: int) -> int | None:
    """What is divided by 6."""
    found = site.maker(value, "BinOp")
    assert found is not None
    a, b = found.operands
    if found.attributes["op"] == "Div":
        return a if site.number(b) == 6.0 else None
    for other, constant in ((a, b), (b, a)):
        number = site.number(constant)
        if number is not None and isclose(number, 1 / 6, rel_tol=1e-6):
            return other
    return None


def _held_sum(site: RewriteSite, value: int) -> int | None:
    """X of Clip(x + 3, 0, 6)."""
    held = site.maker(value, "Clip", min=0.0, max=6.0)
    if held is None:
        return None
    total = site.maker(held.operands[0], "BinOp", op="Add")
    return None if total is None else _besides(site, total.operands, 3.0)


def _besides(site: RewriteSite, operands: tuple[int, ...], number: float) -> int | None:
    """The operand that is not a certain number."""
    a, b = operands
    for value, other in ((a, b), (b, a)):
        found = site.number(other)
        if found is not None and isclose(found, number, rel_tol=1e-5):
            return value
    return None


def _gelu(site: RewriteSite) -> int | None:
    """X * 0.5 * (1 + Erf(x / sqrt(2))), in whatever order the factors stand."""
    factors = _factors(site)
    if len(factors) != 3:
        return None
    halves = [v for v in factors if site.number(v) == 0.5]
    for gate in factors:
        x = _normal(site, gate)
        if x is not None and len(halves) == 1 and x in factors:
            return site.add("Gelu", x)
    return None


def _factors(site: RewriteSite) -> list[int]:
    """The factors of a product of three."""
    a, b = site.operands
    for value, other in ((a, b), (b, a)):
        inner = site.only(value, "BinOp", op="Mul")
        if inner is not None:
            return [*inner.operands, other]
    return []


def _normal(site: RewriteSite, value: int) -> int | None:
    """X of 1 + Erf(x / sqrt(2))."""
    total = site.maker(value, "BinOp", op="Add")
    inner = None if total is None else _besides(site, total.operands, 1.0)
    gate = None if inner is None else site.maker(inner, "Unary", op="Erf")
    if gate is None:
        return None
    over = site.maker(gate.operands[0], "BinOp")
    if over is None:
        return None
    if over.attributes["op"] == "Div":
        number = site.number(over.operands[1])
        is_root = number is not None and isclose(number, sqrt(2), rel_tol=1e-4)
        return over.operands[0] if is_root else None
    if over.attributes["op"] == "Mul":
        return _besides(site, over.operands, sqrt(0.5))
    return None

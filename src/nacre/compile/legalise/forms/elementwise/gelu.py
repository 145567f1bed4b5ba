"""The `Gelu` that a model spells out with bounds between its steps.

Integers of 16 bits between the steps are finer than the floats, so that only their ends are left,
each pair as a `Clip`. How far a step reaches follows from the bounds of x: a `Clip` that cuts off
less than one step of 16 bits does no more than the rounding that is left out with it. Bounds of the
product of x and its gate are bounds of the result.
"""

from __future__ import annotations

from math import erf, inf, isclose, isfinite, sqrt

from nacre.core.ops import OPS
from nacre.core.rewrite.site import RewriteSite, Rules

_STEPS = (1 << 16) - 1
_CLOSE = 1e-4  # of numbers that were stored in 16 bits
Range = tuple[float, float]
_ALL: Range = (-inf, inf)


def bounded_gelu(site: RewriteSite) -> int | None:
    """(x * (1 + Erf(x / sqrt(2)))) * 0.5, in whatever order the factors stand."""
    if site.attributes["op"] != "Mul":
        return None
    for value, third in (site.operands, site.operands[::-1]):
        product, bounds = _bare(site, value)
        inner = site.maker(product, "BinOp", op="Mul")
        for first, second in () if inner is None else (inner.operands, inner.operands[::-1]):
            if _is(site, third, 0.5) and _of_gate(site, second) == first:
                made, (low, high) = site.add("Gelu", first), bounds
                is_open = bounds == _ALL
                return made if is_open else site.add("Clip", made, min=low / 2, max=high / 2)
            x = _of_gate(site, third)
            if x is not None and _is(site, first, 0.5) and second == x:
                low, high = _range(site, x)
                return site.add("Gelu", x) if _is_idle(bounds, (low / 2, high / 2)) else None
            x = _of_gate(site, second)
            if x is not None and _is(site, first, 0.5) and third == x:
                low, high = (1 + erf(end / sqrt(2)) for end in _range(site, x))
                return site.add("Gelu", x) if _is_idle(bounds, (low / 2, high / 2)) else None
    return None


def _of_gate(site: RewriteSite, gate: int) -> int | None:
    """X of 1 + Erf(x / sqrt(2)), where no bounds in between do anything."""
    value, of_sum = _bare(site, gate)
    total = site.maker(value, "BinOp", op="Add")
    inner = None if total is None else _besides(site, total.operands, 1.0)
    if inner is None:
        return None
    value, of_erf = _bare(site, inner)
    function = site.maker(value, "Unary", op="Erf")
    if function is None:
        return None
    value, of_argument = _bare(site, function.operands[0])
    x = _over_root(site, value)
    if x is None:
        return None
    low, high = (end / sqrt(2) for end in _range(site, x))
    reached = (low, high), (erf(low), erf(high)), (1 + erf(low), 1 + erf(high))
    bounds = of_argument, of_erf, of_sum
    return x if all(map(_is_idle, bounds, reached)) else None


def _over_root(site: RewriteSite, value: int) -> int | None:
    """X of x / sqrt(2), or of x * sqrt(0.5)."""
    found = site.maker(value, "BinOp")
    if found is None or found.attributes["op"] not in ("Div", "Mul"):
        return None
    if found.attributes["op"] == "Mul":
        return _besides(site, found.operands, sqrt(0.5))
    return found.operands[0] if _is(site, found.operands[1], sqrt(2)) else None


def _bare(site: RewriteSite, value: int) -> tuple[int, Range]:
    """A value without its bounds, and these."""
    found = site.maker(value, "Clip")
    return (value, _ALL) if found is None else (found.operands[0], _range(site, value))


def _range(site: RewriteSite, value: int) -> Range:
    """Between which numbers a value is held."""
    found = site.maker(value, "Clip")
    if found is None:
        return _ALL
    given = OPS["Clip"].filled(found.attributes)
    return float(given["min"]), float(given["max"])


def _is_idle(bounds: Range, reached: Range) -> bool:
    """Whether bounds cut off less than one of their steps."""
    (low, high), (least, most) = bounds, reached
    step = (high - low) / _STEPS if isfinite(high - low) else 0.0
    return low <= least + step and high >= most - step


def _is(site: RewriteSite, value: int, number: float) -> bool:
    found = site.number(value)
    return found is not None and isclose(found, number, rel_tol=_CLOSE)


def _besides(site: RewriteSite, operands: tuple[int, ...], number: float) -> int | None:
    """The operand that is not a certain number."""
    a, b = operands
    return a if _is(site, b, number) else b if _is(site, a, number) else None


GELU_FORMS: Rules = {"BinOp": [bounded_gelu]}

"""The `Gelu` that a model spells out, exactly or by `Tanh`, maybe with bounds between its steps.

Integers of 16 bits between the steps are finer than the floats, so that only their ends are left,
each pair as a `Clip`. How far a step reaches follows from the bounds of x: a `Clip` that cuts off
less than one step of 16 bits does no more than the rounding that is left out with it. Bounds of the
product of x and its gate are bounds of the result.
"""

from __future__ import annotations

from math import erf, inf, isclose, isfinite, pi, sqrt

from nacre.core.ops import OPS
from nacre.core.rewrite.site import RewriteSite, either_order

_STEPS = (1 << 16) - 1
Range = tuple[float, float]
_ALL: Range = (-inf, inf)


def gelu(site: RewriteSite) -> int | None:
    """X * 0.5 * (1 + Erf(x / sqrt(2))), in whatever order the factors stand.

    Or x * 0.5 * (1 + Tanh(sqrt(2 / pi) * (x + 0.044715 x^3))).
    """
    if site.attributes["op"] != "Mul":
        return None
    for value, third in either_order(site.op):
        product, bounds = _without_bounds(site, value)
        for first, second in either_order(site.maker(product, "BinOp", op="Mul")):
            found_gelu = _gelu_of_factors(site, (first, second, third), bounds)
            if found_gelu is not None:
                return found_gelu
    return None


def _gelu_of_factors(site: RewriteSite, factors: tuple[int, int, int], bounds: Range) -> int | None:
    """The `Gelu` of three factors, of which the product of the first two is held in bounds."""
    first, second, third = factors
    if site.is_number(third, 0.5):
        recovered = _gelu(site, first, second)
        if recovered is None or bounds == _ALL:
            return recovered
        return site.add("Clip", recovered, min=bounds[0] / 2, max=bounds[1] / 2)
    if not site.is_number(first, 0.5):
        return None
    for x, gate, reached in (
        (second, third, _range(site, second)),
        (third, second, _gate_range(site, third)),
    ):
        if _cuts_nothing(bounds, (reached[0] / 2, reached[1] / 2)):
            recovered = _gelu(site, x, gate)
            if recovered is not None:
                return recovered
    return None


def _gelu(site: RewriteSite, x: int, gate: int) -> int | None:
    """The `Gelu` of x, where a factor is the gate of one."""
    if _argument_of_erf(site, gate) == x:
        return site.add("Gelu", x)
    return site.add("Gelu", x, approximate="tanh") if _is_by_tanh(site, gate, x) else None


def _argument_of_erf(site: RewriteSite, gate: int) -> int | None:
    """X of 1 + Erf(x / sqrt(2)), where no bounds in between do anything."""
    value, of_sum = _without_bounds(site, gate)
    inner = _beside(site, value, "Add", 1.0)
    if inner is None:
        return None
    value, of_erf = _without_bounds(site, inner)
    function = site.maker(value, "Unary", op="Erf")
    if function is None:
        return None
    value, of_argument = _without_bounds(site, function.operands[0])
    x = _beside(site, value, "Div", sqrt(2))
    x = _beside(site, value, "Mul", sqrt(0.5)) if x is None else x
    if x is None:
        return None
    low, high = (end / sqrt(2) for end in _range(site, x))
    reached = (low, high), (erf(low), erf(high)), _gate_range(site, x)
    bounds = of_argument, of_erf, of_sum
    return x if all(map(_cuts_nothing, bounds, reached)) else None


def _is_by_tanh(site: RewriteSite, gate: int, x: int) -> bool:
    """Whether a value is 1 + Tanh(sqrt(2 / pi) * (x + 0.044715 x^3))."""
    inner = _beside(site, gate, "Add", 1.0)
    function = None if inner is None else site.maker(inner, "Unary", op="Tanh")
    if function is None:
        return False
    cubic = _beside(site, function.operands[0], "Mul", sqrt(2 / pi))
    total = None if cubic is None else site.maker(cubic, "BinOp", op="Add")
    return any(one == x and _is_cube(site, other, x) for one, other in either_order(total))


def _is_cube(site: RewriteSite, value: int, x: int) -> bool:
    """Whether a value is 0.044715 * x * x * x, in whatever order, or by `Pow`."""
    factors, number, todo = 0, 1.0, [value]
    while todo:
        at = todo.pop()
        factor, known = site.maker(at, "BinOp"), site.number(at)
        if known is not None:
            number *= known
        elif at == x:
            factors += 1
        elif factor is not None and factor.attributes["op"] == "Mul":
            todo.extend(factor.operands)
        elif factor is not None and factor.attributes["op"] == "Pow" and factor.operands[0] == x:
            power = site.number(factor.operands[1])
            factors += int(power) if power in (2.0, 3.0) else 100
        else:
            return False
    return factors == 3 and isclose(number, 0.044715, rel_tol=1e-3)


def _beside(site: RewriteSite, value: int, op: str, number: float) -> int | None:
    """The operand beside a number, where a value is made by an operation."""
    found = site.maker(value, "BinOp", op=op)
    return None if found is None else site.beside(found, number)


def _without_bounds(site: RewriteSite, value: int) -> tuple[int, Range]:
    """A value without its bounds, and these."""
    found = site.maker(value, "Clip")
    return (value, _ALL) if found is None else (found.operands[0], _range(site, value))


def _range(site: RewriteSite, value: int) -> Range:
    """Between which numbers a value is held."""
    found = site.maker(value, "Clip")
    if found is None:
        return _ALL
    given = OPS["Clip"].with_defaults(found.attributes)
    return float(given["min"]), float(given["max"])


def _gate_range(site: RewriteSite, x: int) -> Range:
    """Between which numbers 1 + Erf(x / sqrt(2)) lies."""
    low, high = _range(site, x)
    return 1 + erf(low / sqrt(2)), 1 + erf(high / sqrt(2))


def _cuts_nothing(bounds: Range, reached: Range) -> bool:
    """Whether bounds cut off less than one of their steps."""
    (low, high), (least, most) = bounds, reached
    step = (high - low) / _STEPS if isfinite(high - low) else 0.0
    return low <= least + step and high >= most - step

"""The `Gelu` that a model spells out, exactly or by `Tanh`, maybe with bounds between its steps.

Integers of 16 bits between the steps are finer than the floats, so that only their ends are left,
each pair as a `Clip`. How far a step reaches follows from the bounds of x: a `Clip` that cuts off
less than one step of 16 bits does no more than the rounding that is left out with it. Bounds of the
product of x and its gate are bounds of the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import erf, inf, isclose, isfinite, pi, sqrt

from nacre.core.module import CoreOperation
from nacre.core.ops import OPS
from nacre.core.rewrite.recover.expressions import (
    Polynomial,
    Range,
    factors_of,
    is_float,
    polynomial,
    scale_of_product,
)
from nacre.core.rewrite.site import RewriteSite, either_order

_STEPS = (1 << 16) - 1
_ALL: Range = (-inf, inf)
_SLOPE = sqrt(2 / pi)
_ARGUMENTS: Mapping[str, Polynomial] = {  # of the function in the gate
    "Erf": {1: sqrt(0.5)},
    "Tanh": {1: _SLOPE, 3: 0.044715 * _SLOPE},
}
_NEAR = {0: 0.0, 1: 1e-4, 2: 0.0, 3: 1e-3}  # by power: models round the number of the cube


def gelu(site: RewriteSite) -> int | None:
    """X * 0.5 * (1 + Erf(x / sqrt(2))), in whatever order the factors stand.

    Or x * 0.5 * (1 + Tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), however that is multiplied out.
    """
    if site.attributes["op"] not in ("Mul", "Div") or not is_float(site):
        return None
    recovered = _gelu_of_product(site)
    return _gelu_in_bounds(site) if recovered is None else recovered


def _gelu_of_product(site: RewriteSite) -> int | None:
    """The `Gelu` whose steps have no bounds."""
    factors = factors_of(site, site.op)
    for gate in factors:
        function, half = _function_of_gate(site, gate)
        if function is None:
            continue
        for x in factors:
            scale = scale_of_product(site, site.op, (x, gate)) if x != gate else None
            if scale is None or not isclose(scale * half, 0.5, rel_tol=1e-4):
                continue
            name = str(function.attributes["op"])
            if _is_near(polynomial(site, function.operands[0], x), _ARGUMENTS[name]):
                return site.add("Gelu", x, approximate="tanh" if name == "Tanh" else "none")
    return None


def _function_of_gate(site: RewriteSite, gate: int) -> tuple[CoreOperation | None, float]:
    """The `Erf` or `Tanh` of a * (1 + Erf(..)), and a."""
    for value, other in either_order(site.maker(gate, "BinOp", op="Add")):
        number, factor = site.number(other), site.maker(value, "BinOp", op="Mul")
        for inner in [value] if factor is None else factor.operands:
            function = site.maker(inner, "Unary")
            if number is None or function is None or function.attributes["op"] not in _ARGUMENTS:
                continue
            scale = 1.0 if factor is None else scale_of_product(site, factor, (inner,))
            if scale is not None and isclose(number, scale, rel_tol=1e-4):
                return function, number
    return None, 0.0


def _is_near(found: Polynomial | None, expected: Polynomial) -> bool:
    """Whether a polynomial is another, but for how its numbers were rounded."""
    if found is None:
        return False
    powers = found.keys() | expected.keys()
    return all(isclose(found.get(p, 0), expected.get(p, 0), rel_tol=_NEAR[p]) for p in powers)


def _gelu_in_bounds(site: RewriteSite) -> int | None:
    """The `Gelu` by `Erf` whose steps may have bounds."""
    for value, third in either_order(site.op) if site.attributes["op"] == "Mul" else ():
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
    return site.add("Gelu", x) if _argument_of_erf(site, gate) == x else None


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

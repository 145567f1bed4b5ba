"""What an expression comes to, in whatever order it is written: products, polynomials, bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from nacre.core.module import CoreOperation
from nacre.core.ops import OPS
from nacre.core.rewrite.site import RewriteSite, either_order

Range = tuple[float, float]
Polynomial = Mapping[int, float]  # coefficients by power

_MOST_FACTORS = 8
_MOST_DEPTH = 8
_MOST_POWER = 3


def is_float(site: RewriteSite) -> bool:
    """Whether the operation at hand gives floats."""
    return site.op.type.element.kind == "float"


def factors_of(site: RewriteSite, op: CoreOperation) -> list[int]:
    """What an operation is the product of, and what those are products of, but for divisors."""
    factors = list(_operands_and_divisor(site, op)[0])
    for value in factors:  # which grows on the way
        inner = site.maker(value, "BinOp")
        if inner is not None and len(factors) < _MOST_FACTORS:
            factors += _operands_and_divisor(site, inner)[0]
    return factors


def scale_of_product(site: RewriteSite, op: CoreOperation, factors: Sequence[int]) -> float | None:
    """The number that an operation is the product of these factors times; None where it is not."""
    missing = list(factors)
    operands, divisor = _operands_and_divisor(site, op)
    todo, scale = list(operands), 1 / divisor
    for _ in range(2 * _MOST_FACTORS):
        if not todo:
            return None if missing else scale
        at = todo.pop()
        number, inner = site.number(at), site.maker(at, "BinOp")
        if at in missing:
            missing.remove(at)
        elif number is not None:
            scale *= number
        elif inner is None:
            return None
        else:
            operands, divisor = _operands_and_divisor(site, inner)
            if not operands:
                return None
            todo += operands
            scale /= divisor
    return None


def _operands_and_divisor(site: RewriteSite, op: CoreOperation) -> tuple[tuple[int, ...], float]:
    """What an operation multiplies, and the number that it divides by; nothing of any other."""
    kind = op.attributes["op"]
    if kind == "Mul":
        return op.operands, 1.0
    divisor = site.number(op.operands[1]) if kind == "Div" else None
    return (op.operands[:1], divisor) if divisor else ((), 1.0)


def polynomial(site: RewriteSite, value: int, x: int, depth: int = 0) -> Polynomial | None:
    """A value as a polynomial of x up to its cube; None where it is none."""
    number, op = site.number(value), site.maker(value, "BinOp", "Neg")
    if value == x:
        return {1: 1.0}
    if number is not None:
        return {0: number}
    if op is None or depth == _MOST_DEPTH:
        return None
    if op.opcode == "BinOp" and op.attributes["op"] == "Pow":
        exponent = site.number(op.operands[1])
        factors = [op.operands[0]] * int(exponent) if exponent in (2.0, 3.0) else []
        return _product(*(polynomial(site, one, x, depth + 1) for one in factors))
    parts = [polynomial(site, one, x, depth + 1) for one in op.operands]
    return _combine(op, parts)


def _combine(op: CoreOperation, parts: Sequence[Polynomial | None]) -> Polynomial | None:
    """The polynomial of an operation on polynomials."""
    kind = "Neg" if op.opcode == "Neg" else op.attributes["op"]
    first, second = parts[0], parts[-1]
    if first is None or second is None:
        return None
    if kind == "Neg":
        return _product(first, {0: -1.0})
    if kind == "Mul":
        return _product(first, second)
    if kind == "Div":
        return _product(first, {0: 1 / second[0]}) if set(second) == {0} and second[0] else None
    if kind not in ("Add", "Sub"):
        return None
    sign = 1.0 if kind == "Add" else -1.0
    powers = first.keys() | second.keys()
    return {power: first.get(power, 0.0) + sign * second.get(power, 0.0) for power in powers}


def _product(*parts: Polynomial | None) -> Polynomial | None:
    """The product of polynomials; None of none at all, and above the cube."""
    result: dict[int, float] = {0: 1.0}
    for part in parts:
        if part is None:
            return None
        products: dict[int, float] = {}
        for power, number in result.items():
            for other, factor in part.items():
                products[power + other] = products.get(power + other, 0.0) + number * factor
        result = products
    return result if parts and max(result) <= _MOST_POWER else None


def without_bounds(site: RewriteSite, value: int) -> tuple[int, Range]:
    """A value before it is held between numbers, by whatever operations, and these numbers."""
    low, high = -inf, inf
    while (bounds := _bounds(site, value)) is not None:
        value, (least, most) = bounds
        low, high = max(low, least), min(high, most)
    return value, (low, high)


def _bounds(site: RewriteSite, value: int) -> tuple[int, Range] | None:
    """The operand and the bounds of an operation that holds a value between numbers."""
    op = site.maker(value, "Clip", "Relu", "ReluNan", "BinOp")
    if op is None:
        return None
    if op.opcode == "Clip":
        given = OPS["Clip"].with_defaults(op.attributes)
        return op.operands[0], (float(given["min"]), float(given["max"]))
    if op.opcode != "BinOp":
        return op.operands[0], (0.0, inf)
    kind = op.attributes["op"]
    for one, other in either_order(op) if kind in ("Min", "Max") else ():
        number = site.number(other)
        if number is not None:
            return one, (number, inf) if kind == "Max" else (-inf, number)
    return None

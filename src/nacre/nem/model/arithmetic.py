"""Integer arithmetic of the language: division truncates, the remainder follows the dividend."""

from __future__ import annotations

import math

from nacre.nem.spec.limits import INT64_MAX, INT64_MIN
from nacre.nem.syntax.ast import Binary, Expr, IntLit, Negated, Paren


def divide(a: int, b: int) -> int:
    """Quotient truncated toward zero."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def remainder(a: int, b: int) -> int:
    """What the truncated quotient leaves; it has the dividend's sign."""
    return a - divide(a, b) * b


def apply(op: str, a: int, b: int) -> int:
    """What `op` makes of two integers; the divisor of `/` and `mod` is not 0."""
    if op == "+":
        return a + b
    if op == "-":
        return a - b
    if op == "*":
        return a * b
    return divide(a, b) if op == "/" else remainder(a, b)


def apply_to_floats(op: str, a: float, b: float) -> float:
    """The same for floats; the divisor is not 0, and the remainder has the dividend's sign."""
    if op == "/":
        return a / b
    if op == "mod":
        return math.fmod(a, b) if math.isfinite(a) else math.nan
    return a + b if op == "+" else a - b if op == "-" else a * b


def fits_int64(value: int) -> bool:
    """Whether a value fits in 64 bits with a sign."""
    return INT64_MIN <= value <= INT64_MAX


def literal_value(node: Expr) -> int | None:
    """What an expression of integer literals alone is worth; None where it has no value."""
    if isinstance(node, IntLit):
        return node.value
    if isinstance(node, Paren):
        return literal_value(node.inner)
    if isinstance(node, Negated):
        value = literal_value(node.operand)
        return None if value is None else -value
    if isinstance(node, Binary):
        left, right = literal_value(node.left), literal_value(node.right)
        if left is None or right is None or (right == 0 and node.op in ("/", "mod")):
            return None
        value = apply(node.op, left, right)
        return value if fits_int64(value) else None
    return None

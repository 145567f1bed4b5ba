"""Arithmetic of the language beside that of integers: floats, and expressions of literals."""

from __future__ import annotations

import math

from nacre.base.terms import apply, fits_int64
from nacre.nem.syntax.ast import Binary, Expr, IntLit, Negated, Paren


def apply_to_floats(op: str, a: float, b: float) -> float:
    """The same for floats; the divisor is not 0, and the remainder has the dividend's sign."""
    if op == "/":
        return a / b
    if op == "mod":
        return math.fmod(a, b) if math.isfinite(a) else math.nan
    return a + b if op == "+" else a - b if op == "-" else a * b


def literal_value(node: Expr) -> int | None:
    """What an expression of integer literals alone is worth; None where it has no value."""
    if isinstance(node, IntLit):
        return node.value
    if isinstance(node, Paren):
        return literal_value(node.inner)
    if isinstance(node, Negated):
        value = literal_value(node.operand)
        return None if value is None or not fits_int64(-value) else -value
    if isinstance(node, Binary):
        left, right = literal_value(node.left), literal_value(node.right)
        if left is None or right is None or (right == 0 and node.op in ("/", "mod")):
            return None
        value = apply(node.op, left, right)
        return value if fits_int64(value) else None
    return None

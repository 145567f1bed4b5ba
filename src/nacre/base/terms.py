"""Integers that depend on the loops around them: terms, and the arithmetic of their operations.

Division truncates, and the remainder has the sign of the dividend.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

# What leaves 64 bits could not be a column of a plan.
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1


class LoopVariable(Struct, frozen=True):
    """The variable of a loop around the expression; `depth` 0 is the outermost loop."""

    name: str
    depth: int


class Operation(Struct, frozen=True):
    """An operation that a loop variable takes part in."""

    op: str
    left: Term
    right: Term
    size: int = 1  # how many operations there are in all; `let` can double it line by line


Term = int | LoopVariable | Operation


def operation_count(term: Term) -> int:
    """How many operations a term has."""
    return term.size if isinstance(term, Operation) else 0


def operation(op: str, left: Term, right: Term) -> Operation:
    """An operation that knows how many there are in it."""
    size = 1
    if isinstance(left, Operation):
        size += left.size
    if isinstance(right, Operation):
        size += right.size
    return Operation(op, left, right, size)


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


def fits_int64(value: int) -> bool:
    """Whether a value fits in 64 bits with a sign."""
    return INT64_MIN <= value <= INT64_MAX

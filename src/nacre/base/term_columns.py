"""Integer terms evaluated over a whole iteration grid at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from nacre.base.terms import LoopVariable, Operation, Term, apply, divide, fits_int64

Column = npt.NDArray[np.int64]
Values = int | Column  # an int stands for a column that is the same in every row
IntOrColumn = TypeVar("IntOrColumn", int, Column)
Interval = tuple[int, int]  # the least and the greatest value


@dataclass(eq=False)
class TermProblem(Exception):  # noqa: N818 - carries a finding, not a failure of ours
    """A term has no value in some row: division by zero, or a result beyond 64 bits."""

    kind: Literal["division", "remainder", "overflow"]
    row: int


def evaluate(
    term: Term, variables: Sequence[Column], ranges: Sequence[Interval] | None = None
) -> Values:
    """The value of a term in every row; `variables` has a column per loop, outermost first.

    `ranges` are those of the variables, for whoever asks often.
    """
    if isinstance(term, int):
        return term
    if isinstance(term, LoopVariable):
        return variables[term.depth]
    if interval_of(term, ranges_of(variables) if ranges is None else ranges) is not None:
        return _evaluate_int64(term, variables)
    return _evaluate_exactly(term, variables)


def ranges_of(variables: Sequence[Column]) -> tuple[Interval, ...]:
    """The least and the greatest value of each variable."""
    return tuple((int(v.min()), int(v.max())) if v.size else (0, 0) for v in variables)


def distinct(values: Column) -> Column:
    """The different values, sorted."""
    # `np.unique` would load `numpy.ma`, a tenth of the time that a small check takes.
    ordered = np.sort(values, axis=None)
    keep = np.ones(ordered.size, bool)
    keep[1:] = ordered[1:] != ordered[:-1]
    return ordered[keep]


def loop_depths(term: Term) -> frozenset[int]:
    """The loops whose variables a term uses, by depth."""
    if isinstance(term, int):
        return frozenset()
    if isinstance(term, LoopVariable):
        return frozenset({term.depth})
    return loop_depths(term.left) | loop_depths(term.right)


def uses_remainder(term: object) -> bool:
    """Whether a term takes a remainder: the mark of a ring of slots."""
    return isinstance(term, Operation) and (
        term.op == "mod" or uses_remainder(term.left) or uses_remainder(term.right)
    )


def has_safe_divisors(term: Term) -> bool:
    """Whether a term divides by numbers above 0 alone, so that it has a value everywhere."""
    if isinstance(term, int | LoopVariable):
        return True
    if term.op in ("/", "mod") and not (isinstance(term.right, int) and term.right > 0):
        return False
    return has_safe_divisors(term.left) and has_safe_divisors(term.right)


def interval_of(term: Term, ranges: Sequence[Interval]) -> Interval | None:
    """Bounds of a term over ranges of variables, or None where a part could leave 64 bits."""
    if isinstance(term, int):
        return term, term
    if isinstance(term, LoopVariable):
        return ranges[term.depth]
    left, right = interval_of(term.left, ranges), interval_of(term.right, ranges)
    if left is None or right is None:
        return None
    low, high = _combine(term.op, left, right)
    return (low, high) if fits_int64(low) and fits_int64(high) else None


def _combine(op: str, a: Interval, b: Interval) -> Interval:
    if op == "+":
        return a[0] + b[0], a[1] + b[1]
    if op == "-":
        return a[0] - b[1], a[1] - b[0]
    if op == "*":
        products = [x * y for x in a for y in b]
        return min(products), max(products)
    if b[0] == b[1] > 0:
        return _divide_interval(op, a, b[0])
    largest = max(abs(a[0]), abs(a[1]))
    return -largest, largest  # neither a quotient nor a remainder exceeds the dividend


def _divide_interval(op: str, a: Interval, by: int) -> Interval:
    """Bounds of quotients or remainders by a number above 0; both go towards 0."""
    if op == "/":
        return divide(a[0], by), divide(a[1], by)
    if -by < a[0] and a[1] < by:
        return a
    return (0 if a[0] >= 0 else 1 - by), (0 if a[1] <= 0 else by - 1)


def _evaluate_int64(term: Term, variables: Sequence[Column]) -> Values:
    if isinstance(term, int):
        return term
    if isinstance(term, LoopVariable):
        return variables[term.depth]
    left, right = _evaluate_int64(term.left, variables), _evaluate_int64(term.right, variables)
    if term.op in ("/", "mod"):
        _require_divisor(term, right)
    if isinstance(left, int) and isinstance(right, int):
        return apply(term.op, left, right)
    if term.op == "+":
        return left + right
    if term.op == "-":
        return left - right
    if term.op == "*":
        return left * right
    return _divide_truncating(term.op, left, right)


def _require_divisor(term: Operation, divisor: Values | npt.NDArray[Any]) -> None:
    if isinstance(divisor, int) and divisor:
        return
    zero = np.flatnonzero(np.asarray(divisor) == 0)
    if zero.size:
        kind: Literal["division", "remainder"] = "division" if term.op == "/" else "remainder"
        raise TermProblem(kind, int(zero[0]))


def _divide_truncating(op: str, left: Values, right: Values) -> Column:
    # C semantics: np.fmod keeps the dividend's sign, and the rest divides exactly.
    remainder: Column = np.fmod(left, right)
    if op == "mod":
        return remainder
    quotient: Column = (left - remainder) // right
    return quotient


def _evaluate_exactly(term: Term, variables: Sequence[Column]) -> Values:
    """Row by row in unbounded integers: slow, but right where machine integers would wrap."""
    rows = max((v.size for v in variables), default=1)
    result = np.empty(rows, np.int64)
    for row in range(rows):
        result[row] = _evaluate_row(term, [int(v[row]) for v in variables], row)
    return result


def _evaluate_row(term: Term, values: list[int], row: int) -> int:
    if isinstance(term, int):
        return term
    if isinstance(term, LoopVariable):
        return values[term.depth]
    left, right = _evaluate_row(term.left, values, row), _evaluate_row(term.right, values, row)
    if right == 0 and term.op in ("/", "mod"):
        raise TermProblem("division" if term.op == "/" else "remainder", row)
    value = apply(term.op, left, right)
    if not fits_int64(value):
        raise TermProblem("overflow", row)
    return value

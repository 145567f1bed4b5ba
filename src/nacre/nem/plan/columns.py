"""Arithmetic on columns that cannot wrap, and what is asked of a condition over all rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from nacre.base.term_columns import Values
from nacre.base.terms import LoopVariable, Operation, Term
from nacre.nem.plan.plan import Plan

# Where a result could leave 64 bits, the column holds Python's integers instead.
Exact = int | npt.NDArray[Any]
Condition = bool | np.bool_ | npt.NDArray[np.bool_]
T = TypeVar("T")


def as_term(value: object) -> Term | None:
    """A resolved value as an integer term; None for anything else, which has been reported."""
    if isinstance(value, int | LoopVariable | Operation) and not isinstance(value, bool):
        return value
    return None


def add(a: Exact, b: Exact) -> Exact:
    """The sum in every row."""
    if _largest(a) + _largest(b) < 1 << 63:
        return a + b
    return _to_unbounded(a) + _to_unbounded(b)


def multiply(a: Exact, b: Exact) -> Exact:
    """The product in every row."""
    if _largest(a) * _largest(b) < 1 << 63:
        return a * b
    return _to_unbounded(a) * _to_unbounded(b)


def product(values: Iterable[Values]) -> Exact:
    """The product of several columns."""
    result: Exact = 1
    for value in values:
        result = multiply(result, value)
    return result


def smaller(a: Exact, b: int) -> Exact:
    """The smaller of a column and a number in every row."""
    return min(a, b) if isinstance(a, int) else np.minimum(a, b)


def larger(a: Exact, b: int) -> Exact:
    """The larger of a column and a number in every row."""
    return max(a, b) if isinstance(a, int) else np.maximum(a, b)


def _largest(values: Exact) -> int:
    if isinstance(values, int):
        return abs(values)
    return max(abs(int(values.min())), abs(int(values.max()))) if values.size else 0


def _to_unbounded(values: Exact) -> Exact:
    return values if isinstance(values, int) else values.astype(object)


def value_at(values: Exact, row: int) -> int:
    """The value in a row."""
    return values if isinstance(values, int) else int(values[row])


def first_row(condition: Condition) -> int | None:
    """The first row in which a condition holds; None where it holds in none."""
    if isinstance(condition, bool | np.bool_):
        return 0 if condition else None
    row = int(np.argmax(condition))
    return row if condition.size and bool(condition[row]) else None


class OncePerPlan(Generic[T]):
    """A function of a plan whose result is kept as long as the plan: several rules read it."""

    def __init__(self, make: Callable[[Plan], T]) -> None:
        self._make = make
        self._results: WeakKeyDictionary[Plan, T] = WeakKeyDictionary()
        self.__doc__ = make.__doc__

    def __call__(self, plan: Plan) -> T:
        """The result, made when it is first asked for."""
        if plan not in self._results:
            self._results[plan] = self._make(plan)
        return self._results[plan]

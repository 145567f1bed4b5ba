"""What values terms can have in the iterations of the repeats around them.

Bounds by intervals come first; where they do not decide, every iteration is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from nacre.base.term_columns import Column, TermProblem, evaluate, interval_of, loop_depths
from nacre.base.terms import LoopVariable, Operation, Term, fits_int64, operation_count
from nacre.tcb.image import Repeat, counter
from nacre.tcb.limits import MAX_TERM_DEPTH, MAX_TERM_OPERATIONS

Interval = tuple[int, int]
MOST_ROWS: Final = 1 << 20  # iterations that are looked at one by one
_MOST_STEPS: Final = 1 << 26  # operations on them, in a whole image: a second or so
_SLOW: Final = 64  # what an operation on integers beyond 64 bits costs
_OPERATORS: Final = frozenset({"+", "-", "*", "/", "mod"})


class Undecided(Exception):  # noqa: N818 - an answer, not a failure
    """There are too many iterations to look at each."""


def term_problem(term: Term, depth: int) -> str | None:
    """What is wrong with a term inside so many repeats, before it has a value."""
    if isinstance(term, int):
        return None if fits_int64(term) else f"{term:,} does not fit in 64 bits"
    if operation_count(term) > MAX_TERM_OPERATIONS:
        return f"{operation_count(term):,} operations; a term has at most {MAX_TERM_OPERATIONS:,}"
    return _problem(term, depth, 0)


def _problem(term: Term, depth: int, level: int) -> str | None:
    if level > MAX_TERM_DEPTH:
        return f"operations lie more than {MAX_TERM_DEPTH} deep in each other"
    if isinstance(term, int):
        return None if fits_int64(term) else f"{term:,} does not fit in 64 bits"
    if isinstance(term, LoopVariable):
        if term != counter(term.depth):
            return f"the counter at depth {term.depth} is called `{term.name}`"
        return None if 0 <= term.depth < depth else f"no repeat around it counts `{term.name}`"
    if term.op not in _OPERATORS:
        return f"`{term.op}` is no operation"
    if term.size != 1 + operation_count(term.left) + operation_count(term.right):
        return "a term says another number of operations than it has"
    return _problem(term.left, depth, level + 1) or _problem(term.right, depth, level + 1)


class Budget:
    """How much looking at iterations one by one may cost, for a whole image."""

    def __init__(self) -> None:
        self._left = _MOST_STEPS

    def spend(self, steps: int) -> None:
        """Take so many operations; raises Undecided where there are no more."""
        self._left -= steps
        if self._left < 0:
            raise Undecided


@dataclass(frozen=True)
class Scope:
    """The repeats around a place, the outermost first; their terms are sound."""

    repeats: tuple[Repeat, ...]
    budget: Budget = field(default_factory=Budget, compare=False, repr=False)

    def inside(self, repeat: Repeat) -> Scope:
        """The scope of a repeat's items."""
        return Scope((*self.repeats, repeat), self.budget)

    @property
    def depth(self) -> int:
        """How many there are."""
        return len(self.repeats)

    @cached_property
    def ranges(self) -> list[Interval] | None:
        """Bounds of each counter; None where nothing is ever run."""
        found: list[Interval] = []
        for repeat in self.repeats:
            count = _interval(repeat.count, found)
            if count is None:
                count = extremes(repeat.count, Scope(self.repeats[: len(found)], self.budget))
            if count is None or count[1] <= 0:
                return None
            found.append((repeat.start, repeat.start + count[1] - 1))
        return found

    def grid(self, depths: frozenset[int]) -> list[Column]:
        """Every combination that these counters can have where the place is reached."""
        needed = depths.union(*(loop_depths(repeat.count) for repeat in self.repeats))
        columns: list[Column] = []
        for at, repeat in enumerate(self.repeats):
            rows = columns[0].size if columns else 1
            counts = np.broadcast_to(np.asarray(evaluate(repeat.count, columns)), (rows,))
            # A counter that nothing asks for stands still.
            counts = np.clip(counts, 0, None if at in needed else 1)
            total = int(counts.sum())
            if total > MOST_ROWS:
                raise Undecided
            self.budget.spend(total * (at + 1))
            owners = np.repeat(np.arange(rows), counts)
            firsts = np.repeat(np.cumsum(counts) - counts, counts)
            columns = [column[owners] for column in columns]
            columns.append(np.arange(total) - firsts + repeat.start)
        return columns


def bounds(term: Term, scope: Scope) -> Interval | None:
    """Bounds of a term that may be wide; None where there are none, or nothing is run."""
    ranges = scope.ranges
    return None if ranges is None else _interval(term, ranges)


def extremes(term: Term, scope: Scope) -> Interval | None:
    """The least and the greatest value; None where nothing is run. May raise TermProblem."""
    columns = scope.grid(loop_depths(term))
    if columns and not columns[0].size:
        return None
    rows = columns[0].size if columns else 1
    ranges = [(int(column.min()), int(column.max())) for column in columns]
    is_fast = interval_of(term, ranges) is not None
    scope.budget.spend(rows * (1 + operation_count(term)) * (1 if is_fast else _SLOW))
    values = evaluate(term, columns)
    if isinstance(values, int):
        return values, values
    return int(values.min()), int(values.max())


def _interval(term: Term, ranges: list[Interval]) -> Interval | None:
    """Bounds of a term and of all its parts, or None where one has no value or leaves 64 bits."""
    return interval_of(term, ranges) if _has_value(term) else None


def _has_value(term: Term) -> bool:
    """Whether a term divides by nothing but numbers above 0, as all do that a binder writes."""
    if not isinstance(term, Operation):
        return True
    if term.op in ("/", "mod") and not (isinstance(term.right, int) and term.right > 0):
        return False
    return _has_value(term.left) and _has_value(term.right)


def outside(term: Term, scope: Scope, low: int, high: int | None) -> Interval | str | None:
    """The values of a term if some are below `low` or above `high`, or why there are none."""
    found = bounds(term, scope)
    if scope.ranges is None or (found is not None and _is_inside(found, low, high)):
        return None
    try:
        exact = extremes(term, scope)
    except TermProblem as problem:
        return _REASONS[problem.kind]
    except Undecided:
        return "there are too many iterations in which its values have no bounds"
    return None if exact is None or _is_inside(exact, low, high) else exact


def _is_inside(found: Interval, low: int, high: int | None) -> bool:
    return found[0] >= low and (high is None or found[1] <= high)


_REASONS: Final = {
    "division": "it divides by 0",
    "remainder": "it takes the remainder by 0",
    "overflow": "a value does not fit in 64 bits",
}

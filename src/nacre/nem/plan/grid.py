"""Iteration grids: one row per iteration of a loop nest, as columns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from nacre.base.term_columns import (
    Column,
    Interval,
    Values,
    evaluate,
    has_safe_divisors,
    interval_of,
    ranges_of,
)
from nacre.base.terms import Term
from nacre.nem.model.program import Loop

_MOST_KEPT_ROWS = 1 << 12  # of columns that are remembered: longer ones cost memory


@dataclass(slots=True)
class TermValues:
    """What terms are worth in the rows of a grid, by their identity; loops alike share it."""

    columns: dict[int, tuple[Term, Values]] = field(default_factory=dict)
    intervals: dict[int, tuple[Term, Interval | None]] = field(default_factory=dict)
    ranges: tuple[Interval, ...] | None = None


@dataclass(frozen=True)
class Grid:
    """The iterations of a body, in the order of the program."""

    rows: int
    loops: tuple[Loop, ...] = ()
    ordinals: tuple[Column, ...] = ()  # per loop, outermost first: 0, 1, 2, ...
    values: tuple[Column, ...] = ()  # per loop: the loop variable
    parent: Grid | None = field(default=None, repr=False)
    parent_row: Column = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)
    known: TermValues = field(default_factory=TermValues, repr=False, compare=False)

    def evaluate(self, term: Term) -> Values:
        """A term in every row."""
        if isinstance(term, int):
            return term
        known = self.known.columns.get(id(term))
        if known is not None:
            return known[1]
        values = evaluate(term, self.values, self.ranges)
        if self.rows <= _MOST_KEPT_ROWS:
            self.known.columns[id(term)] = term, values
        return values

    def sure_interval(self, term: Term) -> Interval | None:
        """Bounds of a term over all rows; None where it might have no value in some."""
        if isinstance(term, int):
            return term, term
        known = self.known.intervals.get(id(term))
        if known is None:
            bounds = interval_of(term, self.ranges) if has_safe_divisors(term) else None
            known = self.known.intervals[id(term)] = term, bounds
        return known[1]

    @property
    def ranges(self) -> tuple[Interval, ...]:
        """The least and the greatest value of each loop variable."""
        if self.known.ranges is None:
            self.known.ranges = ranges_of(self.values)
        return self.known.ranges

    def over(self, loop: Loop) -> Grid:
        """The same iterations, of another loop with the same bounds around which there is none."""
        return replace(self, loops=(loop,))

    def iteration(self, row: int) -> tuple[int, ...]:
        """The loop variables of a row, outermost first."""
        return tuple(int(column[row]) for column in self.values)

    def at(self, row: int) -> Grid:
        """The grid of one row alone: a term costs the same however many rows there are."""
        part = slice(row, row + 1)
        ordinals = tuple(column[part] for column in self.ordinals)
        return Grid(1, self.loops, ordinals, tuple(column[part] for column in self.values))

    def row_in(self, ancestor: Grid, rows: Column) -> Column:
        """The rows of an ancestor grid in which these rows lie."""
        grid = self
        while grid is not ancestor:
            rows = grid.parent_row[rows]
            if grid.parent is None:
                raise ValueError("not an ancestor")
            grid = grid.parent
        return rows


@dataclass(eq=False)
class EmptyLoop(Exception):  # noqa: N818 - carries a finding, not a failure of ours
    """A loop has no iteration in some row of the grid around it."""

    first: int
    last: int
    row: int


@dataclass(eq=False)
class TooManyRows(Exception):  # noqa: N818 - carries a finding, not a failure of ours
    """A loop nest has more iterations than the limit."""

    rows: int


TOP = Grid(1)


def inner_grid(outer: Grid, loop: Loop, first: Term, last: Term, limit: int) -> Grid:
    """The grid of a loop's body inside the grid around the loop."""
    start, end = outer.evaluate(first), outer.evaluate(last)
    if isinstance(start, int) and isinstance(end, int):
        return _rectangular(outer, loop, start, end, limit)
    starts, ends = np.broadcast_arrays(np.asarray(start), np.asarray(end))
    # In floating point first: the difference of two extreme bounds would wrap.
    counts_approximate = ends.astype(np.float64) - starts + 1
    empty = np.flatnonzero(ends < starts)
    if empty.size:
        row = int(empty[0])
        raise EmptyLoop(int(starts[row]), int(ends[row]), row)
    if counts_approximate.sum() > limit + 0.5:
        raise TooManyRows(sum(int(e) - int(s) + 1 for s, e in zip(starts, ends, strict=True)))
    counts = ends - starts + 1
    parent_row = np.repeat(np.arange(outer.rows, dtype=np.int64), counts)
    before = np.cumsum(counts) - counts
    ordinal = np.arange(parent_row.size, dtype=np.int64) - before[parent_row]
    return _make_grid(outer, loop, parent_row, ordinal, ordinal + starts[parent_row])


def _rectangular(outer: Grid, loop: Loop, start: int, end: int, limit: int) -> Grid:
    count = end - start + 1
    if count < 1:
        raise EmptyLoop(start, end, 0)
    if count * outer.rows > limit:
        raise TooManyRows(count * outer.rows)
    parent_row = np.repeat(np.arange(outer.rows, dtype=np.int64), count)
    ordinal = np.tile(np.arange(count, dtype=np.int64), outer.rows)
    return _make_grid(outer, loop, parent_row, ordinal, ordinal + start)


def _make_grid(outer: Grid, loop: Loop, parent_row: Column, ordinal: Column, value: Column) -> Grid:
    return Grid(
        parent_row.size,
        (*outer.loops, loop),
        (*(column[parent_row] for column in outer.ordinals), ordinal),
        (*(column[parent_row] for column in outer.values), value),
        outer,
        parent_row,
    )

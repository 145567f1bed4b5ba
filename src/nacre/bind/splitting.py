"""Runs of iterations in which every task of a loop has the same shapes, sizes and attributes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct

from nacre.base.term_columns import loop_depths
from nacre.base.terms import Term
from nacre.bind.counters import Counters
from nacre.bind.task_kinds import TaskKinds
from nacre.nem.model.program import Loop, Statement, Task
from nacre.nem.plan.calls import Symbolic
from nacre.nem.plan.columns import as_term
from nacre.nem.plan.grid import Grid, inner_grid

_ALL = 1 << 62


class Run(Struct, frozen=True):
    """Some iterations of a loop: the first of them, and how many there are."""

    start: int
    count: Term
    value: int  # of the loop variable in the first


class IterationRuns:
    """Finds the runs of loops of a program whose kinds of tasks are all known."""

    def __init__(self, kinds: TaskKinds) -> None:
        self._kinds = kinds
        self._is_even = not any(kinds.varying)

    def of(self, loop: Loop, counters: Counters, row_of: Callable[[], Grid]) -> list[Run]:
        """The runs of a loop that is reached in an iteration of the loops around it."""
        if self._is_even and type(loop.first) is int:  # which is most of them
            return [Run(0, counters.count(loop), loop.first)]
        first, last = as_term(loop.first), as_term(loop.last)
        if first is None or last is None:
            raise ValueError("a loop of a program with errors")
        found = [] if self._is_even else self._varying(loop.body)
        varying = [t for t in found if loop.depth in loop_depths(t)] if found else found
        if not varying:
            value = first if isinstance(first, int) else _value(row_of(), first)
            return [Run(0, counters.count(loop), value)]
        row = row_of()
        grid = inner_grid(row, loop, first, last, _ALL)
        starts = _run_starts(varying, loop.depth, grid)
        values = grid.values[-1]
        pairs = zip(starts, [*starts[1:], grid.rows], strict=True)
        return [Run(start, end - start, int(values[start])) for start, end in pairs]

    def _varying(self, body: tuple[Statement, ...]) -> list[Symbolic]:
        """Terms over loops in what blocks cannot say by a term: shapes, sizes, attributes."""
        found: list[Symbolic] = []
        for statement in body:
            if isinstance(statement, Task):
                found += self._kinds.varying[self._kinds.numbers[statement.position]]
            elif isinstance(statement, Loop):
                found += self._varying(statement.body)
        return found


def _run_starts(varying: list[Symbolic], depth: int, grid: Grid) -> list[int]:
    """The ordinals at which a run begins; every one where a term uses loops further in as well."""
    if any(max(loop_depths(term)) > depth for term in varying):
        return list(range(grid.rows))
    changed = np.zeros(grid.rows, bool)
    changed[0] = True
    for term in varying:
        column = np.broadcast_to(np.asarray(grid.evaluate(term)), (grid.rows,))
        changed[1:] |= column[1:] != column[:-1]
    found: list[int] = np.flatnonzero(changed).tolist()
    return found


def _value(row: Grid, term: Term) -> int:
    value = row.evaluate(term)
    return value if isinstance(value, int) else int(value[0])

"""Program order: the order in which a sequential run comes to the instances of statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nacre.base.term_columns import Column
from nacre.nem.model.program import Loop, Statement, Task
from nacre.nem.plan.columns import OncePerPlan
from nacre.nem.plan.plan import Block, Plan

Counted = Callable[[Statement], bool]


def sequence(plan: Plan, counted: Counted) -> dict[int, Column]:
    """The number of every instance of the counted statements, by the statement's position.

    Numbers run from 0 without gaps; a column has an entry for every row of the statement's grid.
    """
    numbering = _Numberer(counted)
    numbering.block(plan.top, plan.program.body, np.zeros(1, np.int64))
    return numbering.numbers


class _Numberer:
    """Counts statements, iteration by iteration, on whole columns."""

    def __init__(self, counted: Counted) -> None:
        self._counted = counted
        self._counts: dict[int, Column] = {}
        self.numbers: dict[int, Column] = {}

    def block(self, block: Block, body: Sequence[Statement], before: Column) -> None:
        """Number the statements of a body; `before` says how many came before each iteration."""
        inner = {b.loop.position: b for b in block.inner if b.loop is not None}
        for statement in body:
            if isinstance(statement, Loop):
                if statement.position in inner:
                    before = self._loop(inner[statement.position], statement, before)
            elif self._counted(statement):
                self.numbers[statement.position] = before
                before = before + 1

    def _loop(self, block: Block, loop: Loop, before: Column) -> Column:
        counts = self._count_inside(block, loop)
        parents = block.grid.parent_row
        sums = np.cumsum(counts) - counts
        starts = np.searchsorted(parents, np.arange(before.size), side="left")
        self.block(block, loop.body, before[parents] + sums - sums[starts][parents])
        return before + _sum_by_parent(parents, counts, before.size)

    def _count_inside(self, block: Block, loop: Loop) -> Column:
        """How many counted statements each iteration has, inner loops included."""
        if loop.position not in self._counts:
            in_body = sum(not isinstance(s, Loop) and self._counted(s) for s in loop.body)
            counts = np.full(block.grid.rows, in_body, np.int64)
            for inner in block.inner:
                if inner.loop is not None:
                    below = self._count_inside(inner, inner.loop)
                    counts += _sum_by_parent(inner.grid.parent_row, below, block.grid.rows)
            self._counts[loop.position] = counts
        return self._counts[loop.position]


def _sum_by_parent(parents: Column, counts: Column, rows: int) -> Column:
    return np.bincount(parents, counts, rows).astype(np.int64)


def _task_numbers(plan: Plan) -> dict[int, Column]:
    """The number of every task instance among the tasks, by the task's position."""
    return sequence(plan, lambda statement: isinstance(statement, Task))


task_numbers = OncePerPlan(_task_numbers)

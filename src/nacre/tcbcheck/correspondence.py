"""Which instance of which task every instance of a block is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from msgspec import Struct

from nacre.base.term_columns import Column
from nacre.nem.model.program import Task
from nacre.nem.plan.grid import Grid
from nacre.nem.plan.plan import Plan
from nacre.tcb.machine.instances import Instances
from nacre.tcb.machine.tree import PlacedBlock

CONVERSIONS = ("cast", "quantize")


class Mismatch(Struct, frozen=True):
    """An iteration of a task that has none or several blocks, or a block that has no task."""

    task: Task | None
    position: int
    iteration: tuple[int, ...]  # ordinals
    blocks: int


@dataclass(frozen=True, eq=False)
class TaskBlock:
    """A block that stands for a task, and the row of the task's grid of every instance."""

    task: Task
    grid: Grid
    found: PlacedBlock
    rows: Column
    conversion: Task | None = None  # a task without block, which this one does as it stores

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks that it stands for."""
        return (self.task,) if self.conversion is None else (self.conversion, self.task)


@dataclass(frozen=True, eq=False)
class Correspondence:
    """Blocks with their tasks."""

    blocks: tuple[TaskBlock, ...]
    mismatches: tuple[Mismatch, ...]


def match_blocks(plan: Plan, instances: Instances) -> Correspondence:
    """Match the task blocks of an image with the tasks of a plan."""
    by_position: dict[int, list[PlacedBlock]] = {}
    for found in instances.blocks:
        if found.block.kind == "task" and found.grid.rows:
            by_position.setdefault(found.block.position, []).append(found)
    blocks: list[TaskBlock] = []
    mismatches: list[Mismatch] = []
    for task in plan.program.tasks:
        grid = plan.grid_of(task.loops)
        if grid is None:
            raise ValueError("a task that could not be expanded")
        matched, wrong = _match_task(task, grid, by_position.pop(task.position, []))
        blocks += matched
        mismatches += wrong
    for position, left in by_position.items():
        mismatches.append(Mismatch(None, position, left[0].grid.iteration(0), left[0].grid.rows))
    return _with_conversions(plan, blocks, mismatches)


def _with_conversions(
    plan: Plan, blocks: list[TaskBlock], mismatches: list[Mismatch]
) -> Correspondence:
    """Conversions without a block are done by the stores that name them and have a format.

    Whether those do them rightly is for others to say.
    """
    with_block = {block.task.position for block in blocks}
    missing = {
        one.task.position: one.task for one in mismatches
        if one.task is not None and one.task.op in CONVERSIONS
        and one.task.position not in with_block
    }  # fmt: skip
    taken: dict[int, Task] = {}  # by the position of the store
    for store in plan.program.tasks if missing else ():
        named = [missing[dep] for dep in store.deps if dep in missing]
        converts = [task for task in named if store.op == "store" and task.loops == store.loops]
        formats = {b.found.block.format for b in blocks if b.task.position == store.position}
        if len(converts) == 1 and formats and "raw" not in formats:
            taken[store.position] = missing.pop(converts[0].position)
    done = {task.position for task in taken.values()}
    return Correspondence(
        tuple(replace(b, conversion=taken.get(b.task.position)) for b in blocks),
        tuple(one for one in mismatches if one.task is None or one.task.position not in done),
    )


def _match_task(
    task: Task, grid: Grid, blocks: list[PlacedBlock]
) -> tuple[list[TaskBlock], list[Mismatch]]:
    depth = len(grid.ordinals)
    wrong = [b for b in blocks if len(b.grid.counters) != depth]
    if wrong:
        return [], [Mismatch(None, task.position, wrong[0].grid.iteration(0), wrong[0].grid.rows)]
    row_of = {iteration: row for row, iteration in enumerate(_iterations(grid.ordinals, grid.rows))}
    counts = np.zeros(grid.rows, np.int64)
    matched: list[TaskBlock] = []
    mismatches: list[Mismatch] = []
    for found in blocks:
        rows = [row_of.get(i, -1) for i in _iterations(found.grid.counters, found.grid.rows)]
        column = np.array(rows, np.int64)
        strange = np.flatnonzero(column < 0)
        if strange.size:
            mismatches.append(
                Mismatch(None, task.position, found.grid.iteration(int(strange[0])), 1)
            )
            continue
        np.add.at(counts, column, 1)
        matched.append(TaskBlock(task, grid, found, column))
    different = np.flatnonzero(counts != 1)
    if different.size:
        row = int(different[0])
        iteration = tuple(int(column[row]) for column in grid.ordinals)
        mismatches.append(Mismatch(task, task.position, iteration, int(counts[row])))
    return matched, mismatches


def _iterations(columns: tuple[Column, ...], rows: int) -> Iterator[tuple[int, ...]]:
    if not columns:
        return iter([()] * rows)
    return zip(*(column.tolist() for column in columns), strict=True)

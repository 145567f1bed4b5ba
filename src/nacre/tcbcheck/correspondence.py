"""Which instance of which task every instance of a block is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from msgspec import Struct

from nacre.base.term_columns import Column
from nacre.nem.model.program import Task
from nacre.nem.plan.grid import Grid
from nacre.nem.plan.plan import Plan
from nacre.tcbcheck.instances import BlockInstances, Instances


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
    found: BlockInstances
    rows: Column


@dataclass(frozen=True, eq=False)
class Correspondence:
    """Blocks with their tasks."""

    blocks: tuple[TaskBlock, ...]
    mismatches: tuple[Mismatch, ...]


def match_blocks(plan: Plan, instances: Instances) -> Correspondence:
    """Match the task blocks of an image with the tasks of a plan."""
    by_position: dict[int, list[BlockInstances]] = {}
    for found in instances.blocks:
        if found.block.kind == "task" and found.rows:
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
        mismatches.append(Mismatch(None, position, left[0].iteration(0), left[0].rows))
    return Correspondence(tuple(blocks), tuple(mismatches))


def _match_task(
    task: Task, grid: Grid, blocks: list[BlockInstances]
) -> tuple[list[TaskBlock], list[Mismatch]]:
    depth = len(grid.ordinals)
    wrong = [b for b in blocks if len(b.counters) != depth]
    if wrong:
        return [], [Mismatch(None, task.position, wrong[0].iteration(0), wrong[0].rows)]
    row_of = {iteration: row for row, iteration in enumerate(_iterations(grid.ordinals, grid.rows))}
    counts = np.zeros(grid.rows, np.int64)
    matched: list[TaskBlock] = []
    mismatches: list[Mismatch] = []
    for found in blocks:
        rows = [row_of.get(i, -1) for i in _iterations(found.counters, found.rows)]
        column = np.array(rows, np.int64)
        strange = np.flatnonzero(column < 0)
        if strange.size:
            mismatches.append(Mismatch(None, task.position, found.iteration(int(strange[0])), 1))
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

"""The two runs of a binding page side by side: the program on NEM's machine, the image on its own.

Tasks of both have the same numbers, those of the page: by statement, then by row. What belongs to
the image are further columns over the same tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nacre.base.diagnostics import InternalError
from nacre.base.term_columns import Column
from nacre.bind.measure.measured import MeasuredBinding
from nacre.nem.model.program import Task
from nacre.nem.run.timing.resources import Pool as NemPool
from nacre.nem.run.timing.timeline import Timeline
from nacre.tcb.machine.timing import CAUSES, ImageTiming
from nacre.tcb.machine.units import Pool as ImagePool
from nacre.viz.packing import pack_column
from nacre.viz.report_data import statement_tasks, task_columns

# More tasks than so many are shown as shares of time in which units are busy.
MOST_TASKS = 100_000
SHARE_STEPS = 2_000
NONE = -1
_UNIT_COLUMNS = ("unit", "second_unit", "third_unit")


@dataclass(frozen=True, slots=True)
class RunUnit:
    """A unit instance of one of the runs."""

    name: str
    unit: str
    engine: int | None
    side: str  # `program` or `image`
    number: int  # in its run


class BoundRuns:
    """Both runs as columns over the tasks of the page."""

    def __init__(self, measured: MeasuredBinding) -> None:
        self.timeline: Timeline = measured.program.timeline
        self.timing: ImageTiming = measured.timing
        self.tasks: tuple[Task, ...] = statement_tasks(self.timeline)
        self._conversions = measured.bound.fused.conversions

    @cached_property
    def statement(self) -> Column:
        """The statement of every task."""
        sizes = [self.timeline.steps.numbers[task.position].size for task in self.tasks]
        return np.repeat(np.arange(len(sizes)), sizes)

    @property
    def count(self) -> int:
        """How many tasks there are."""
        return self.statement.size

    @property
    def is_merged(self) -> bool:
        """Whether they are too many to be shown one by one."""
        return self.count > MOST_TASKS

    @cached_property
    def program(self) -> dict[str, Column]:
        """The columns of the program's run."""
        return task_columns(self.timeline, self.tasks)

    @cached_property
    def merged_into(self) -> Column:
        """By statement: that of the store which does it on its way; -1: it has its own blocks."""
        index = {task.position: at for at, task in enumerate(self.tasks)}
        found = np.full(len(self.tasks), NONE, np.int64)
        for one in self._conversions:
            if one.task.position in index:
                found[index[one.task.position]] = index[one.store.position]
        return found

    @cached_property
    def order(self) -> Column:
        """The instance of the image for every task; -1 where the block of another does it."""
        instances = self.timing.instances
        index = {task.position: at for at, task in enumerate(self.tasks)}
        statement = instances.by_block(lambda placed: index.get(placed.block.position, NONE))
        tasks = self.timing.tasks
        blocks = tasks[np.lexsort((tasks, statement[tasks]))]
        has_block = self.merged_into[self.statement] < 0
        if not np.array_equal(statement[blocks], self.statement[has_block]):
            raise InternalError("an image has other tasks than its program")
        order = np.full(self.count, NONE, np.int64)
        order[has_block] = blocks
        return order

    @cached_property
    def image(self) -> dict[str, Column]:
        """The columns of the image's run; what it lost by cause."""
        start = self._of_image(self.timing.start, NONE)
        duration = self._of_image(self.timing.end, NONE) - start
        units = self.timing.unit
        return {
            "start": start,
            "duration": np.where(start >= 0, duration, 0),
            **{
                name: self._of_image(units[:, slot], NONE)
                for slot, name in enumerate(_UNIT_COLUMNS)
            },
            **{f"lost_{cause}": self._of_image(self.timing.stalls[cause], 0) for cause in CAUSES},
        }

    def _of_image(self, column: Column, otherwise: int) -> Column:
        """A column over instances as one over tasks."""
        return np.append(column, np.int64(otherwise))[self.order]

    @cached_property
    def units(self) -> tuple[RunUnit, ...]:
        """The units of both, those of an engine together: the program's, then the image's."""
        found = [
            *_run_units(self.timeline.placement.pools, "program"),
            *_run_units(self.timing.units.pools, "image"),
        ]
        most = len(found)
        return tuple(sorted(found, key=lambda u: most if u.engine is None else u.engine))

    def _page_units(self, side: str) -> Column:
        """The number on the page of every unit of a run; -1 stays as it is."""
        numbers = {u.number: at for at, u in enumerate(self.units) if u.side == side}
        return np.array([*(numbers[n] for n in range(len(numbers))), -1], np.int64)

    def _unit_slots(self, side: str) -> list[Column]:
        columns, on_page = getattr(self, side), self._page_units(side)
        return [on_page[columns[name]] for name in _UNIT_COLUMNS if name in columns]

    def unit_rows(self) -> list[dict[str, Any]]:
        """Units as the page takes them; where tasks are merged with the shares of their time."""
        cycles = {"program": self.timeline.cycles, "image": self.timing.cycles}
        users = self._users()
        rows = []
        for at, unit in enumerate(self.units):
            start, duration = users[at]
            row = {
                "name": unit.name,
                "unit": unit.unit,
                "engine": unit.engine,
                "side": unit.side,
                "cycles": cycles[unit.side],
                "busy": int(duration.sum()),
                "tasks": int(start.size),
            }
            if self.is_merged:
                row["shares"] = pack_column(_busy_by_step(start, duration, max(cycles.values())))
            rows.append(row)
        return rows

    def _users(self) -> list[tuple[Column, Column]]:
        """By unit: when the tasks that it had started, and how long they took."""
        parts: list[list[tuple[Column, Column]]] = [[] for _ in self.units]
        for side in ("program", "image"):
            columns = getattr(self, side)
            for slot in self._unit_slots(side):
                used = np.flatnonzero((slot >= 0) & (columns["start"] >= 0))
                order = used[np.argsort(slot[used], kind="stable")]
                edges = np.searchsorted(slot[order], np.arange(len(self.units) + 1))
                for at in np.unique(slot[order]).tolist():
                    mine = order[edges[at] : edges[at + 1]]
                    parts[at].append((columns["start"][mine], columns["duration"][mine]))
        empty = np.zeros(0, np.int64)
        return [
            (np.concatenate([empty, *(s for s, _ in each)]),
             np.concatenate([empty, *(d for _, d in each)]))
            for each in parts
        ]  # fmt: skip

    def packed(self, side: str) -> dict[str, str] | None:
        """The columns of a run as text; None where tasks are merged."""
        if self.is_merged:
            return None
        columns = dict(getattr(self, side))
        names = [name for name in _UNIT_COLUMNS if name in columns]
        columns |= dict(zip(names, self._unit_slots(side), strict=True))
        return {name: pack_column(column) for name, column in columns.items()}

    def sums(self) -> dict[str, str]:
        """Cycles by statement: busy in both runs, and lost by cause in the image's."""
        size = len(self.tasks)
        columns = {
            "program_busy": self.program["duration"],
            "image_busy": self.image["duration"],
            **{f"lost_{cause}": self.image[f"lost_{cause}"] for cause in CAUSES},
        }
        found = {}
        for name, column in columns.items():
            total = np.zeros(size, np.int64)
            np.add.at(total, self.statement, column)
            found[name] = pack_column(total)
        return found


def _run_units(pools: Iterable[NemPool | ImagePool], side: str) -> Iterator[RunUnit]:
    for pool in pools:
        for number in range(pool.first, pool.first + pool.count):
            yield RunUnit(pool.name(number), pool.unit, pool.engine, side, number)


def _busy_by_step(start: Column, duration: Column, cycles: int) -> Column:
    """Busy cycles in each of SHARE_STEPS steps of a run."""
    edges = np.arange(SHARE_STEPS + 1) * cycles // SHARE_STEPS
    return np.diff(_cycles_before(edges, start) - _cycles_before(edges, start + duration))


def _cycles_before(edges: Column, times: Column) -> Column:
    """By edge, the cycles from each time before it up to it, added up."""
    ordered = np.sort(times)
    sums = np.append(np.int64(0), np.cumsum(ordered))
    count = np.searchsorted(ordered, edges, side="right")
    return count * edges - sums[count]

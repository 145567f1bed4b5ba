"""Tasks that may be there, and room that they take, as variables of CP-SAT."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ortools.sat.python import cp_model

from tests.compile.optimal.solution import Box, Solution, TaskStart

GRAIN = 64  # bytes in which L1 is counted

Key = tuple[int, str, int, int]  # as in `TaskStart`
Sum = Any  # a linear expression: a number, a variable, or several


@dataclass(frozen=True, eq=False)
class OptionalTask:
    """A task that is there if its tile is."""

    start: cp_model.IntVar
    end: cp_model.IntVar
    there: cp_model.IntVar
    key: Key


@dataclass(frozen=True, eq=False)
class _OptionalBox:
    key: tuple[object, ...]
    start: cp_model.IntVar
    end: cp_model.IntVar
    size: Sum
    there: cp_model.IntVar


class ModelWriter:
    """A model of CP-SAT while it is written."""

    def __init__(self, most_cycles: int, l1_bytes: int, *, has_tasks: bool) -> None:
        self.model, self.has_tasks = cp_model.CpModel(), has_tasks
        self._most, self._l1 = most_cycles, l1_bytes // GRAIN
        self.makespan = self.model.new_int_var(0, most_cycles, "cycles")
        self.on_units: dict[str, list[cp_model.IntervalVar]] = {}
        self._demands: list[tuple[cp_model.IntervalVar, Sum]] = []
        self._boxes: list[_OptionalBox] = []
        self._tasks: list[OptionalTask] = []

    def literal(self) -> cp_model.IntVar:
        """A truth value."""
        return self.model.new_bool_var("")

    def any_of(self, chosen: Sequence[cp_model.IntVar]) -> cp_model.IntVar:
        """Whether one of some choices, of which at most one is made, is made."""
        there = self.literal()
        self.model.add(sum(chosen) == there)
        return there

    def time(self) -> cp_model.IntVar:
        """A time of the plan."""
        return self.model.new_int_var(0, self._most, "")

    def task(
        self, key: Key, units: Iterable[str], choices: Sequence[tuple[cp_model.IntVar, int]]
    ) -> OptionalTask:
        """A task that is there with one of some choices, and takes so many cycles with it."""
        there = self.any_of([chosen for chosen, _ in choices])
        cycles = [took for _, took in choices]
        start, end = self.time(), self.time()
        size = self.model.new_int_var(min(cycles), max(cycles), "")
        length = sum(took * chosen for chosen, took in choices)
        self.model.add(size == length).only_enforce_if(there)
        interval = self.model.new_optional_interval_var(start, size, end, there, "")
        for unit in units:
            self.on_units.setdefault(unit, []).append(interval)
        self.model.add(end <= self.makespan).only_enforce_if(there)
        task = OptionalTask(start, end, there, key)
        self._tasks.append(task)
        return task

    def after(self, second: OptionalTask, first: OptionalTask, *when: cp_model.IntVar) -> None:
        """One task after another, where both are there."""
        both = [first.there, second.there, *when]
        self.model.add(second.start >= first.end).only_enforce_if(both)

    def box(
        self,
        key: tuple[object, ...],
        start: cp_model.IntVar,
        end: cp_model.IntVar,
        there: cp_model.IntVar,
        size: Sum,
    ) -> None:
        """Room in L1 from one time to another."""
        if not isinstance(size, int):  # a sum; what is demanded must be one variable
            total, size = size, self.model.new_int_var(0, self._l1, "")
            self.model.add(size == total)
        interval = self.model.new_optional_interval_var(start, self.time(), end, there, "")
        self._demands.append((interval, size))
        self._boxes.append(_OptionalBox(key, start, end, size, there))

    def limit_l1(self) -> None:
        """What is there at a time fits."""
        intervals, sizes = [i for i, _ in self._demands], [size for _, size in self._demands]
        self.model.add_cumulative(intervals, sizes, self._l1)

    def limit_unit(self, unit: str, count: int) -> None:
        """At most so many tasks of a unit at a time."""
        intervals = self.on_units.get(unit, [])
        if count == 1:
            self.model.add_no_overlap(intervals)
        elif intervals:
            self.model.add_cumulative(intervals, [1] * len(intervals), count)

    def solution(self, solver: cp_model.CpSolver, choices: Iterable[int]) -> Solution:
        """What a solver found."""
        value = solver.value
        starts = [
            TaskStart(*task.key, value(task.start), value(task.end))
            for task in self._tasks
            if value(task.there)
        ]
        boxes = [
            Box(box.key, value(box.start), value(box.end), value(box.size) * GRAIN)
            for box in self._boxes
            if value(box.there)
        ]
        return Solution(value(self.makespan), tuple(choices), tuple(starts), tuple(boxes))

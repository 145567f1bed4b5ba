"""Where and for how long every step runs, as columns over the steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nacre.base.term_columns import Column
from nacre.nem.model.devices import Device
from nacre.nem.model.program import Task
from nacre.nem.plan.grid import Grid
from nacre.nem.plan.placement import bind_units, engine_column
from nacre.nem.run.sessions.steps import Steps
from nacre.nem.run.timing.costs import DDR, CostKey, cost_key, cycles, ddr_cycles, touches_ddr
from nacre.nem.run.timing.figure_memo import FigureMemo
from nacre.nem.run.timing.profile import TimingProfile
from nacre.nem.spec.units import DEVICE_UNITS, ENGINE_UNITS

NONE = -1
_SLOTS = 2  # units that a task may occupy together

_PoolKey = tuple[str, int | None]  # a unit, and its engine


@dataclass(frozen=True, slots=True)
class Pool:
    """The instances of a unit type on an engine, or on the device."""

    unit: str
    engine: int | None
    first: int  # instance
    count: int

    def name(self, instance: int) -> str:
        """`NMU[0]@1`: instance 0 of engine 1; `sDMA[0]` belongs to the device."""
        where = "" if self.engine is None else f"@{self.engine}"
        return f"{self.unit}[{instance - self.first}]{where}"


@dataclass(frozen=True, eq=False)
class Placement:
    """Columns over the steps; two entries of `pool` and `bound` a step."""

    pools: tuple[Pool, ...]
    duration: Column
    shared: Column  # cycles of DDR's bandwidth; 0 where that is not limited
    pool: Column  # (steps, 2); -1: none
    bound: Column  # (steps, 2): the instance within the pool; -1: any
    engine: Column  # that a task counts on

    def pool_of(self, instance: int) -> Pool:
        """The pool that an instance belongs to."""
        return next(p for p in self.pools if p.first <= instance < p.first + p.count)


class NoUnitError(Exception):
    """A task finds no unit on the device."""

    def __init__(self, task: Task) -> None:
        super().__init__(f"no unit of the device can run `{task.op}`")
        self.task = task


def pools_of(device: Device) -> tuple[Pool, ...]:
    """The units of a device, instance after instance."""
    pools: list[Pool] = []
    first = 0
    engine_units = [(u, e) for e in range(device.num_engines) for u in ENGINE_UNITS if u != "SEQ"]
    for unit, engine in [*engine_units, *((u, None) for u in DEVICE_UNITS)]:
        count = device.count(unit)
        if count > 0:
            pools.append(Pool(unit, engine, first, count))
            first += count
    return tuple(pools)


def place_steps(steps: Steps, device: Device, profile: TimingProfile) -> Placement:
    """Units, bindings and cycles of every step; NoUnitError where a task has none."""
    return StepCosts(steps, device).place(profile)


class StepCosts:
    """The units of every step, and its cycles as a function of figures, worked out by kind.

    A plan has thousands of tasks of a few hundred kinds: those of a kind take as many cycles as
    each other, whatever the figures.
    """

    def __init__(self, steps: Steps, device: Device) -> None:
        self.steps, self.device = steps, device
        self._costs: dict[CostKey, _Cost] = {}
        self._cell_count = 0
        self._cell = np.full((steps.count, _SLOTS + 1), NONE, np.int64)  # among all costs
        self._pools = pools_of(device)
        self._pool = np.full((steps.count, _SLOTS), NONE, np.int64)
        self._bound = np.full((steps.count, _SLOTS), NONE, np.int64)
        self._engine = np.full(steps.count, NONE, np.int64)
        index = {(p.unit, p.engine): i for i, p in enumerate(self._pools)}
        engines = engine_column(steps.plan, device)
        for task in steps.plan.program.tasks:
            self._bind(task, index, np.asarray(engines[task.position]))

    def place(self, profile: TimingProfile) -> Placement:
        """Where steps run, and for how long with these figures."""
        by_unit = self._cycles(profile)[self._cell]
        shared = np.ascontiguousarray(by_unit[:, _SLOTS])
        duration = by_unit.max(axis=1, initial=0)
        return Placement(self._pools, duration, shared, self._pool, self._bound, self._engine)

    def count_kinds(self, steps: Sequence[int]) -> Column:
        """How many of some steps are of each kind."""
        kinds, kind_of_step = self._kinds
        return np.bincount(kind_of_step[np.asarray(steps, np.int64)], minlength=len(kinds))

    def kind_cycles(self, profile: TimingProfile) -> Column:
        """The cycles of a step of each kind with these figures."""
        longest: Column = self._cycles(profile)[self._kinds[0]].max(axis=1, initial=0)
        return longest

    @cached_property
    def _kinds(self) -> tuple[Column, Column]:
        """The costs of each kind of steps, and which kind a step is of."""
        kinds, kind_of_step = np.unique(self._cell, axis=0, return_inverse=True)
        return kinds, kind_of_step.reshape(-1)

    def _cycles(self, profile: TimingProfile) -> Column:
        """All costs with these figures; the last is that of `NONE`."""
        found = np.zeros(self._cell_count + 1, np.int64)
        for cost in self._costs.values():
            found[cost.first : cost.first + cost.places] = cost.cycles(profile)
        return found

    def _bind(self, task: Task, index: Mapping[_PoolKey, int], engine: Column) -> None:
        rows = self.steps.numbers[task.position]
        binding = bind_units(task, self.device, self.steps.grid(task))
        if binding is None:
            raise NoUnitError(task)
        engine_of_row = np.broadcast_to(engine, rows.shape)
        self._engine[rows] = engine_of_row
        for slot, unit in enumerate(binding.units):
            self._cell[rows, slot] = self._cost_index(task, unit)
            if unit in DEVICE_UNITS:
                self._pool[rows, slot] = index[unit, None]
            else:
                by_engine = [index.get((unit, e), NONE) for e in range(self.device.num_engines)]
                self._pool[rows, slot] = np.array(by_engine, np.int64)[engine_of_row]
            if unit == binding.unit and binding.index is not None:
                self._bound[rows, slot] = binding.index
        if touches_ddr(task):
            self._cell[rows, _SLOTS] = self._cost_index(task, DDR)

    def _cost_index(self, task: Task, unit: str) -> int | Column:
        """Where the costs of a task on a unit stand among all: one place, or one for every row."""
        grid = self.steps.grid(task)
        key = cost_key(task, unit, grid)
        if key not in self._costs:
            places = grid.rows if key.is_by_row else 1
            self._costs[key] = _Cost(task, unit, grid, self._cell_count, places)
            self._cell_count += places
        first = self._costs[key].first
        return first + np.arange(grid.rows) if key.is_by_row else first


class _Cost:
    """A task on a unit, for all that cost as much."""

    def __init__(self, task: Task, unit: str, grid: Grid, first: int, places: int) -> None:
        self.first, self.places = first, places  # among all costs
        self._task, self._unit, self._grid = task, unit, grid
        self.cycles = FigureMemo(self._cycles)

    def _cycles(self, profile: TimingProfile) -> int | Column:
        if self._unit == DDR:
            return ddr_cycles(self._task, self._grid, profile)
        return cycles(self._task, self._unit, self._grid, profile)

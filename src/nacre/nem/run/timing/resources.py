"""Where and for how long every step runs, as columns over the steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nacre.base.term_columns import Column
from nacre.nem.model.devices import Device
from nacre.nem.model.program import Task
from nacre.nem.plan.placement import bind_units, engine_column
from nacre.nem.run.sessions.steps import Steps
from nacre.nem.run.timing.costs import cycles, ddr_cycles
from nacre.nem.run.timing.profile import TimingProfile
from nacre.nem.spec.units import DEVICE_UNITS, ENGINE_UNITS

NONE = -1


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
    pools = pools_of(device)
    index = {(p.unit, p.engine): i for i, p in enumerate(pools)}
    duration, shared = np.zeros(steps.count, np.int64), np.zeros(steps.count, np.int64)
    pool = np.full((steps.count, 2), NONE, np.int64)
    bound = np.full((steps.count, 2), NONE, np.int64)
    engine = np.full(steps.count, NONE, np.int64)
    engines = engine_column(steps.plan, device)
    for task in steps.plan.program.tasks:
        rows = steps.numbers[task.position]
        grid = steps.grid(task)
        binding = bind_units(task, device, grid)
        if binding is None:
            raise NoUnitError(task)
        engine_of_row = np.broadcast_to(np.asarray(engines[task.position]), rows.shape)
        engine[rows] = engine_of_row
        for slot, unit in enumerate(binding.units):
            duration[rows] = np.maximum(duration[rows], cycles(task, unit, grid, profile))
            if unit in DEVICE_UNITS:
                pool[rows, slot] = index[unit, None]
            else:
                by_engine = [index.get((unit, e), NONE) for e in range(device.num_engines)]
                pool[rows, slot] = np.array(by_engine, np.int64)[engine_of_row]
            if unit == binding.unit and binding.index is not None:
                bound[rows, slot] = binding.index
        shared[rows] = ddr_cycles(task, grid, profile)
    return Placement(pools, np.maximum(duration, shared), shared, pool, bound, engine)

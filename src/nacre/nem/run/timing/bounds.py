"""Lower bounds: what no schedule of this plan on this device can beat."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from nacre.nem.model.program import Task
from nacre.nem.run.machine.signatures import signatures
from nacre.nem.run.timing import compiled, costs
from nacre.nem.run.timing.costs import work_of
from nacre.nem.run.timing.events import NEVER
from nacre.nem.run.timing.resources import NONE
from nacre.nem.run.timing.timeline import Timeline, run_events
from nacre.nem.spec.units import DEVICE_UNITS


@dataclass(frozen=True, slots=True)
class Bounds:
    """Cycles that each kind of limit asks for alone."""

    compute: int  # the busiest of NMU, CSTL and VPU
    dma: int
    ddr: int  # sDMA, and DDR's own bandwidth where it is given
    chain: int  # dependences and windows, with unlimited units
    by_unit: dict[str, int]  # `NMU@0` and so on: busy cycles over instances

    @property
    def largest(self) -> int:
        """The bound that counts."""
        return max(self.compute, self.dma, self.ddr, self.chain)


def bounds(timeline: Timeline) -> Bounds:
    """The lower bounds of a timed plan."""
    by_unit = _work_by_unit(timeline)
    by_type: dict[str, int] = defaultdict(int)
    for name, cycles in by_unit.items():
        unit = name.partition("@")[0]
        by_type[unit] = max(by_type[unit], cycles)
    return Bounds(
        max(by_type[unit] for unit in ("NMU", "CSTL", "VPU")),
        by_type["DMA"],
        max(by_type["sDMA"], _ddr_cycles(timeline)),
        chain_cycles(timeline),
        by_unit,
    )


def _work_by_unit(timeline: Timeline) -> dict[str, int]:
    """Work that is bound to a pool, over its instances; a bound instance counts for itself."""
    placement = timeline.placement
    by_unit: dict[str, int] = {}
    for number, pool in enumerate(placement.pools):
        mine = placement.pool == number
        work = int((placement.duration[:, None] * mine).sum())
        of_instances = [
            int((placement.duration[:, None] * (mine & (placement.bound == k))).sum())
            for k in range(pool.count)
        ]
        name = pool.unit if pool.engine is None else f"{pool.unit}@{pool.engine}"
        by_unit[name] = max(-(-work // pool.count), *of_instances)
    return by_unit


def _ddr_cycles(timeline: Timeline) -> int:
    return int(timeline.placement.shared.sum())


def ddr_bytes(timeline: Timeline) -> int:
    """Bytes that pass between DDR and the chip."""
    total = 0
    for task in timeline.steps.plan.program.tasks:
        moved = costs.ddr_bytes(task, timeline.steps.grid(task))
        rows = timeline.steps.numbers[task.position].size
        total += moved * rows if isinstance(moved, int) else int(moved.sum())
    return total


def chain_cycles(timeline: Timeline) -> int:
    """How long the plan takes when every unit exists as often as it is asked for."""
    steps, placement = timeline.steps, timeline.placement
    if steps.count == 0:
        return 0
    free = replace(
        placement,
        pool=np.full_like(placement.pool, NONE),
        bound=np.full_like(placement.bound, NONE),
        shared=np.zeros_like(placement.shared),
    )
    limits = [NEVER] * timeline.device.num_engines
    simulated = run_events(steps, free, limits, compile=compiled.is_worth_it(steps.count))
    return int(max(simulated.end))


def macs_by_unit(timeline: Timeline) -> dict[str, int]:
    """MACs by unit type."""
    by_unit: dict[str, int] = defaultdict(int)
    for task in timeline.steps.plan.program.tasks:
        if task.op in ("transfer", "store"):
            continue
        unit = unit_type(timeline, task)
        task_signatures = signatures(task, timeline.steps.grid(task))
        macs = [
            work_of(task, s.call).macs if s.call is not None else 0
            for s in task_signatures.distinct
        ]
        rows = timeline.steps.numbers[task.position].size
        by_unit[unit] += (
            macs[0] * rows
            if task_signatures.index is None
            else sum(macs[i] for i in task_signatures.index)
        )
    return {unit: macs for unit, macs in by_unit.items() if macs}


def unit_type(timeline: Timeline, task: Task) -> str:
    """The type of unit that a task runs on."""
    step = int(timeline.steps.numbers[task.position][0])
    return timeline.placement.pools[int(timeline.placement.pool[step, 0])].unit


def is_device_unit(unit: str) -> bool:
    """Whether a unit belongs to the device, not to an engine."""
    return unit in DEVICE_UNITS

"""What a timed run says: per task, per unit, against the bounds, and in a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nacre.nem.model.program import Task
from nacre.nem.run.sessions.naming import task_name
from nacre.nem.run.timing.bounds import Bounds, bounds, is_device_unit, macs_by_unit
from nacre.nem.run.timing.critical import Link, critical_path
from nacre.nem.run.timing.timeline import Timeline


@dataclass(frozen=True, eq=False, repr=False)
class TimedResult:
    """The figures of a timed run, worked out when they are asked for."""

    timeline: Timeline
    clock_mhz: float | None = None

    @property
    def milliseconds(self) -> float | None:
        """The time at the clock, where one is given."""
        return None if self.clock_mhz is None else self.cycles / (1000 * self.clock_mhz)

    @property
    def status(self) -> str:
        """`completed`, or `deadlock` where tasks wait for tokens that nobody releases."""
        return "deadlock" if self.timeline.is_stuck else "completed"

    @property
    def cycles(self) -> int:
        """From the call to the last completion."""
        return self.call_cycles + self.timeline.cycles

    @property
    def call_cycles(self) -> int:
        """What a call costs before its first task, where the device says so."""
        return self.timeline.profile.get("SEQ", "call") or 0

    def cycles_of(self, order: Sequence[int]) -> int:
        """When the last of some steps is complete."""
        return int(self.timeline.end[np.asarray(order, np.int64)].max()) if len(order) else 0

    def __repr__(self) -> str:
        name = self.timeline.steps.plan.program.source.name
        return f"<TimedResult {name} on {self.timeline.device.name}: {self.cycles} cycles>"

    @cached_property
    def bounds(self) -> Bounds:
        """What no schedule can beat."""
        return bounds(self.timeline)

    @cached_property
    def critical_path(self) -> list[Link]:
        """The tasks that decide the total."""
        return critical_path(self.timeline)

    @cached_property
    def units(self) -> dict[str, dict[str, int]]:
        """Every unit instance: busy cycles and tasks."""
        placement, unit = self.timeline.placement, self.timeline.unit
        total = sum(pool.count for pool in placement.pools)
        busy, tasks = np.zeros(total, np.int64), np.zeros(total, np.int64)
        for slot in range(2):
            used = unit[:, slot] >= 0
            busy += np.bincount(unit[used, slot], placement.duration[used], total).astype(np.int64)
            tasks += np.bincount(unit[used, slot], minlength=total)
        return {
            pool.name(i): {"busy": int(busy[i]), "tasks": int(tasks[i])}
            for pool in placement.pools
            for i in range(pool.first, pool.first + pool.count)
        }

    @cached_property
    def macs_by_unit(self) -> dict[str, int]:
        """MACs by unit type."""
        return macs_by_unit(self.timeline)

    @cached_property
    def cycles_by_unit(self) -> dict[str, int]:
        """Busy cycles by unit type, all instances together."""
        by_unit: dict[str, int] = {}
        for name, entry in self.units.items():
            unit = name.partition("[")[0]
            by_unit[unit] = by_unit.get(unit, 0) + entry["busy"]
        return {unit: busy for unit, busy in by_unit.items() if busy}

    @property
    def tasks(self) -> Iterator[dict[str, Any]]:
        """One row for every task instance, in program order; waits are left out."""
        for step in range(self.timeline.steps.count):
            if isinstance(self.timeline.steps.statement(step), Task):
                yield self.task_row(step)

    def task_row(self, step: int) -> dict[str, Any]:
        """A task instance as plain values."""
        t = self.timeline
        statement = t.steps.statement(step)
        stalls = t.stalls
        units = self.unit_names(step)
        name = task_name(t.steps.plan.program, statement) if isinstance(statement, Task) else "wait"
        return {
            "name": name,
            "op": statement.op if isinstance(statement, Task) else "wait",
            "iteration": list(t.steps.iteration(step)),
            "engine": None if self.is_on_device(step) else int(t.placement.engine[step]),
            "unit": "+".join(units),
            "start": int(t.start[step]),
            "end": int(t.end[step]),
            "stall": {
                "window": int(stalls.window[step]),
                "dependence": int(stalls.dependence[step]),
                "token": int(stalls.token[step]),
                "unit": int(stalls.unit[step]),
            },
            **self._debug_entry(step),
        }

    def _debug_entry(self, step: int) -> dict[str, str]:
        """What `@debug` calls a task, where it has a name."""
        name = self.timeline.steps.debug_name(step)
        return {} if name is None else {"debug": name}

    def is_on_device(self, step: int) -> bool:
        """Whether a step runs on units of the device alone: then it has no engine."""
        placement = self.timeline.placement
        first, second = (int(pool) for pool in placement.pool[step])
        return second < 0 <= first and is_device_unit(placement.pools[first].unit)

    def unit_names(self, step: int) -> list[str]:
        """The unit instances that a step occupied."""
        placement = self.timeline.placement
        found = [int(u) for u in self.timeline.unit[step] if u >= 0]
        return [placement.pool_of(u).name(u) for u in found]

    @cached_property
    def by_tag(self) -> dict[str, dict[str, int]]:
        """What `@profile(tag)` on tasks and loops gathers: instances, busy cycles, waits, span."""
        t = self.timeline
        gathered: dict[str, list[np.ndarray[Any, np.dtype[np.int64]]]] = {}
        for task in t.steps.plan.program.tasks:
            for tag in dict.fromkeys(_tags(task)):
                gathered.setdefault(tag, []).append(t.steps.numbers[task.position])
        by_tag = {}
        for tag, columns in gathered.items():
            steps = np.concatenate(columns)
            by_tag[tag] = {
                "tasks": int(steps.size),
                "busy": int(t.placement.duration[steps].sum()),
                "waits": int(t.stalls.total[steps].sum()),
                "first": int(t.start[steps].min()),
                "last": int(t.end[steps].max()),
            }
        return by_tag

    @cached_property
    def started(self) -> list[int]:
        """The steps that started, in the order in which they did."""
        order = self.timeline.order
        found: list[int] = order[self.timeline.start[order] >= 0].tolist()
        return found

    @cached_property
    def waiting(self) -> list[str]:
        """The steps that never started, where the run is stuck."""
        steps = self.timeline.steps
        return [steps.name(int(s)) for s in np.flatnonzero(self.timeline.start < 0)]

    @cached_property
    def stall_totals(self) -> dict[str, int]:
        """Waiting cycles of all tasks by cause."""
        stalls = self.timeline.stalls
        is_task = self._is_task
        return {
            cause: int(getattr(stalls, cause)[is_task].sum())
            for cause in ("window", "dependence", "token", "unit")
        }

    @cached_property
    def _is_task(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        steps = self.timeline.steps
        tasks = np.array([t.position for t in steps.plan.program.tasks], np.int64)
        return np.isin(steps.position, tasks)

    def sentence(self) -> str:
        """The bottleneck in words, with its numbers."""
        if self.timeline.is_stuck:
            return f"stuck: {len(self.waiting)} tasks wait for tokens that nobody releases"
        b = self.bounds
        kind = max(("compute", "dma", "ddr", "chain"), key=lambda k: getattr(b, k))
        if not b.largest:
            return "nothing to do"
        above = 100 * (self.cycles - b.largest) / b.largest
        tail = f"; the run takes {self.cycles} cycles, {above:.0f}% above that"
        if kind == "chain":
            return f"dependences and windows alone need {b.chain} cycles{tail}"
        unit = max(b.by_unit, key=lambda name: b.by_unit[name])
        if kind == "ddr" and b.by_unit.get("sDMA", 0) < b.ddr:
            return f"DDR's bandwidth alone needs {b.ddr} cycles{tail}"
        needs = b.by_unit[unit]
        share = f"its work alone needs {needs} cycles ({100 * needs / self.cycles:.0f}% busy)"
        return f"{unit} is the bottleneck: {share}{tail}"

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        b = self.bounds
        names = [self.timeline.steps.name(link.step) for link in self.critical_path]
        return {
            "status": self.status,
            "cycles": self.cycles,
            **({"call_cycles": self.call_cycles} if self.call_cycles else {}),
            "tasks": list(self.tasks),
            "units": self.units,
            "bounds": {"compute": b.compute, "dma": b.dma, "ddr": b.ddr, "chain": b.chain},
            "critical_path": names,
            **({"profile": self.by_tag} if self.by_tag else {}),
        }


def _tags(task: Task) -> Iterator[str]:
    """The tags of a task: its own, and those of the loops around it."""
    for decorators in (task.decorators, *(loop.decorators for loop in task.loops)):
        for decorator in decorators:
            if decorator.name == "profile":
                yield str(decorator.arguments[0]) if decorator.arguments else "(no tag)"

"""The timed machine: when every instance runs, where, and what it waits for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.loops.column_heaps import Ints
from nacre.base.source import whole_file
from nacre.base.term_columns import Column
from nacre.tcb.figures import Figures
from nacre.tcb.image import Image
from nacre.tcb.machine import compiled, events
from nacre.tcb.machine.event_columns import MOST_UNITS, TASK, Columns
from nacre.tcb.machine.hardware import MOST_CYCLES
from nacre.tcb.machine.instances import Instances, unroll
from nacre.tcb.machine.prepare import BankColumns, bank_columns, event_columns
from nacre.tcb.machine.tag_states import stuck_finding
from nacre.tcb.machine.units import UnitColumns, place_instances
from nacre.tcb.rules.running import TCB52

CAUSES = ("tags", "queue", "token", "arbitration", "unit", "bank", "burst", "chain")


@dataclass(frozen=True, eq=False)
class ImageTiming:
    """Columns over the instances. One that never started has -1; then the run is stuck."""

    instances: Instances
    units: UnitColumns
    columns: Columns

    @cached_property
    def start(self) -> Column:
        """When each began."""
        return np.asarray(self.columns.start, np.int64)

    @cached_property
    def end(self) -> Column:
        """When each was complete."""
        return np.asarray(self.columns.end, np.int64)

    @cached_property
    def unit(self) -> Column:
        """(instances, MOST_UNITS): the units that each occupied; -1: none."""
        return np.asarray(self.columns.unit, np.int64).reshape(-1, MOST_UNITS)

    @property
    def cycles(self) -> int:
        """When the last was complete."""
        return int(self.end.max(initial=0))

    @property
    def is_stuck(self) -> bool:
        """Whether something never started."""
        return bool((self.start < 0).any())

    def unit_names(self, instance: int) -> tuple[str, ...]:
        """The units that an instance occupied, such as `NMU[0]@1`."""
        found = []
        for number in self.unit[instance].tolist():
            pools = (p for p in self.units.pools if p.first <= number < p.first + p.count)
            found += [pool.name(number) for pool in pools]
        return tuple(found)

    @cached_property
    def tasks(self) -> Column:
        """The instances that are tasks."""
        return np.flatnonzero(self.instances.kinds == TASK)

    @cached_property
    def stalls(self) -> Mapping[str, Column]:
        """Cycles lost by cause, of every instance; those of what is no task are 0."""
        return _stalls(self)

    @property
    def stall_totals(self) -> dict[str, int]:
        """The same, of all together."""
        return {cause: int(column.sum()) for cause, column in self.stalls.items()}

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What keeps a run from its end."""
        if not self.is_stuck:
            return ()
        waiting = np.flatnonzero(self.start < 0).tolist()
        return (stuck_finding(self.instances, self.columns.tag_count, waiting),)


def time_image(image: Image, *, compile: bool | None = None) -> ImageTiming:
    """Time an image on its own microarchitecture; large ones are compiled where that can be."""
    return time_instances(unroll(image), compile=compile)


def time_instances(instances: Instances, *, compile: bool | None = None) -> ImageTiming:
    """The same where it is unrolled already."""
    figures = Figures(dict(instances.image.machine.figures))
    units = place_instances(instances, figures)
    return time_placed(instances, units, bank_columns(instances, figures), compile=compile)


def time_placed(
    instances: Instances, units: UnitColumns, banks: BankColumns, *, compile: bool | None = None
) -> ImageTiming:
    """The same where it is known, too, what blocks take."""
    figures = Figures(dict(instances.image.machine.figures))
    longest = float(units.duration.sum(dtype=np.float64)) + 1
    if longest > MOST_CYCLES:
        place = whole_file(instances.image.source or instances.image.entry)
        message = f"the tasks together take more than {MOST_CYCLES:,} cycles"
        raise InputError([TCB52.at(place, message, help="lower the figures of the hardware")])
    if compile is None:
        compile = compiled.is_worth_it(instances.count)
    given = (instances, units, banks, figures)
    # A key of the event heap is a time and an instance in one: it must not leave 64 bits.
    if compile and instances.count and longest * (2 * instances.count + 1) < 2.0**58:
        flat, columns = compiled.flatten(event_columns(*given, np.ascontiguousarray))
        compiled.simulate_flat(flat)
    else:
        columns = event_columns(*given, _as_list)
        events.simulate(_as_fast_columns(columns))
    return ImageTiming(instances, units, columns)


def _as_list(column: Column) -> Ints:
    return column.tolist()


class _FastColumns:
    """The same columns as attributes of an object, which Python finds faster than a tuple's."""

    __slots__ = Columns._fields


def _as_fast_columns(columns: Columns) -> Columns:
    fast: Any = _FastColumns()
    for name in Columns._fields:
        setattr(fast, name, getattr(columns, name))
    return cast(Columns, fast)


def _stalls(timing: ImageTiming) -> dict[str, Column]:
    """Where the time of tasks went, from when they were next in their lane to their end."""
    c = timing.columns
    ready, at = np.asarray(c.ready, np.int64), np.asarray(c.candidate_at, np.int64)
    passed = np.asarray(c.passed_at, np.int64)
    has_run = (timing.instances.kinds == TASK) & (timing.start >= 0)
    waited = np.where(has_run, timing.start - at, 0)
    token = np.clip(np.asarray(c.token_at, np.int64) - at, 0, waited)
    lost = np.where(passed >= 0, np.clip(timing.start - passed, 0, waited - token), 0)
    queue = np.asarray(c.blocked, np.int64)
    found = {
        "tags": np.maximum(0, ready - _head_times(timing)),
        "queue": queue,
        "token": token,
        "arbitration": lost,
        "unit": at - ready - queue + waited - token - lost,
        "bank": np.asarray(c.bank_wait, np.int64),
        "burst": timing.units.duration - timing.units.ideal,
        "chain": np.asarray(c.chain_wait, np.int64),
    }
    return {cause: np.where(has_run, column, 0) for cause, column in found.items()}


def _head_times(timing: ImageTiming) -> Column:
    """When each task became the next of its lane: as the one before it started."""
    lanes = np.asarray(timing.columns.lane_instance, np.int64)
    lane = np.asarray(timing.columns.lane, np.int64)
    found = np.zeros(timing.instances.count, np.int64)
    follows = lane[lanes[1:]] == lane[lanes[:-1]]
    found[lanes[1:]] = np.where(follows, timing.start[lanes[:-1]], 0)
    return found

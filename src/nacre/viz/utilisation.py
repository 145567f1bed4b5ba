"""How unit instances spent the run: busy, or idle and why."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nacre.base.term_columns import Column
from nacre.nem.run.timing.timeline import Timeline

# While a unit is idle, the next task that it will run waits for one of these.
CAUSES = ("not reached", "window", "dependence", "token", "unit")
AFTER = "no more work"
NEVER = "never used"


@dataclass(frozen=True, slots=True)
class UnitUse:
    """A unit instance over the whole run; busy and idle cycles add up to the run's."""

    name: str
    unit: str
    engine: int | None
    busy: int
    tasks: int
    idle: dict[str, int]  # by cause; only those that occur


def utilisation(timeline: Timeline) -> list[UnitUse]:
    """Every unit instance, in the order of the device."""
    total = sum(pool.count for pool in timeline.placement.pools)
    step, unit = _occupations(timeline)
    busy = _sum_by_bin(unit, timeline.end[step] - timeline.start[step], total)
    tasks = np.bincount(unit, minlength=total)
    idle = {cause: _sum_by_bin(unit, c, total) for cause, c in _gaps(timeline, step, unit).items()}
    last_end = np.zeros(total, np.int64)
    last_end[unit] = timeline.end[step]  # in order of time: the last one stays
    idle[AFTER] = np.where(tasks > 0, timeline.cycles - last_end, 0)
    idle[NEVER] = np.where(tasks > 0, 0, timeline.cycles)
    return [
        UnitUse(
            pool.name(i),
            pool.unit,
            pool.engine,
            int(busy[i]),
            int(tasks[i]),
            {cause: int(column[i]) for cause, column in idle.items() if column[i]},
        )
        for pool in timeline.placement.pools
        for i in range(pool.first, pool.first + pool.count)
    ]


def _occupations(timeline: Timeline) -> tuple[Column, Column]:
    """Steps and the instances that they held, sorted by instance and time."""
    is_occupied = (timeline.unit >= 0) & (timeline.start >= 0)[:, None]
    step, slot = np.nonzero(is_occupied)
    unit = timeline.unit[step, slot]
    # A task of no cycles comes before the one that follows it at the same time.
    order = np.lexsort((timeline.end[step], timeline.start[step], unit))
    return step[order], unit[order]


def _gaps(timeline: Timeline, step: Column, unit: Column) -> dict[str, Column]:
    """The idle cycles before every occupation, by what the task waited for during them."""
    stalls, start = timeline.stalls, timeline.start[step]
    is_first = np.append(True, unit[1:] != unit[:-1])[: unit.size]
    free_since = np.where(is_first, 0, np.roll(timeline.end[step], 1))
    at = start - stalls.total[step]
    gaps = {CAUSES[0]: np.clip(at - free_since, 0, start - free_since)}
    for cause in CAUSES[1:]:
        until = at + getattr(stalls, cause)[step]
        gaps[cause] = np.maximum(0, np.minimum(until, start) - np.maximum(at, free_since))
        at = until
    return gaps


def _sum_by_bin(unit: Column, values: Column, total: int) -> Column:
    sums = np.zeros(total, np.int64)
    np.add.at(sums, unit, values)
    return sums

"""What a timed run looks like at one moment, and where it is stuck."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nacre.base.diagnostics import Diagnostic, Related
from nacre.nem.run.timing.result import TimedResult
from nacre.nem.spec.rules.running import RUN10

_SHOWN = 8


def engine_states(result: TimedResult, order: Sequence[int]) -> dict[int, dict[str, Any]]:
    """By engine: the time of the latest start, and what each unit is doing then."""
    timeline, now = result.timeline, time_after(result, order)
    running = {
        name: timeline.steps.name(step)
        for step in order
        if timeline.start[step] <= now < timeline.end[step]
        for name in result.unit_names(step)
    }
    states: dict[int, dict[str, Any]] = {}
    for pool in timeline.placement.pools:
        if pool.engine is not None:
            units = states.setdefault(pool.engine, {"time": now, "units": {}})["units"]
            for instance in range(pool.first, pool.first + pool.count):
                name = pool.name(instance)
                units[name.partition("@")[0]] = running.get(name)
    return states


def time_after(result: TimedResult, order: Sequence[int]) -> int:
    """What time it is after some steps: that of the latest start, after all of them the end."""
    if len(order) == result.timeline.steps.count:
        return result.cycles
    return int(result.timeline.start[order[-1]]) if order else 0


def steps_in_flight(result: TimedResult, order: Sequence[int]) -> frozenset[int]:
    """The steps that have started and not ended when the latest of an order starts."""
    now = time_after(result, order)
    return frozenset(step for step in order if result.timeline.end[step] > now)


def deadlock_findings(result: TimedResult) -> list[Diagnostic]:
    """The deadlock of a run that is stuck."""
    waiting = np.flatnonzero(result.timeline.start < 0)
    return [deadlock(result, int(waiting[0]))] if waiting.size else []


def deadlock(result: TimedResult, step: int) -> Diagnostic:
    """The tasks that never start, because no token comes free."""
    timeline = result.timeline
    steps = timeline.steps
    span = steps.plan.program.span
    limit = timeline.profile.get("SEQ", "max_active_tokens")
    waiting = result.waiting
    listed = ", ".join(f"`{name}`" for name in waiting[:_SHOWN])
    more = f" and {len(waiting) - _SHOWN} more" if len(waiting) > _SHOWN else ""
    stuck = [i for i in range(steps.count) if timeline.start[i] < 0 and timeline.ready[i] >= 0]
    related = tuple(
        Related(span(steps.statement(i).node), f"`{steps.name(i)}` waits for a token")
        for i in stuck[:_SHOWN]
    )
    return RUN10.at(
        span(steps.statement(step).node),
        f"at cycle {timeline.cycles} nothing can start: all {limit} tokens are taken, and "
        f"{listed}{more} wait",
        related=related,
        help="let tasks name tokens sooner, use a smaller `@max_in_flight`, or a device with more "
        "tokens",
    )

"""When every step ran and what it waited for: the result of the timed machine, as columns."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from nacre.base.loops.column_heaps import Ints
from nacre.base.stages import stage
from nacre.base.term_columns import Column
from nacre.nem.model.devices import Device
from nacre.nem.model.program import Loop, Statement
from nacre.nem.plan.grid import TOP, Grid
from nacre.nem.plan.live_tokens import live_tokens
from nacre.nem.plan.plan import Plan
from nacre.nem.run.sessions.steps import Steps
from nacre.nem.run.timing import compiled, events
from nacre.nem.run.timing.events import Columns
from nacre.nem.run.timing.prepare import columns, token_limits
from nacre.nem.run.timing.profile import TimingProfile
from nacre.nem.run.timing.resources import Placement, place_steps

# The proof goes by statements; a program of more of them is timed before it is proved.
_MOST_TASKS_TO_PROVE = 2000


@dataclass(frozen=True, eq=False)
class Stalls:
    """Cycles that each step waited, by cause."""

    window: Column
    dependence: Column
    token: Column
    unit: Column

    @property
    def total(self) -> Column:
        """All of them."""
        return self.window + self.dependence + self.token + self.unit


@dataclass(frozen=True, eq=False)
class Timeline:
    """Columns over the steps. A step that never started has -1; then the run is stuck."""

    steps: Steps
    device: Device
    profile: TimingProfile
    placement: Placement
    ready: Column
    token_at: Column
    start: Column
    end: Column
    unit: Column  # (steps, 2) instances; -1: none
    node_time: Column

    @property
    def is_stuck(self) -> bool:
        """Whether something never started."""
        return bool((self.start < 0).any())

    @property
    def cycles(self) -> int:
        """When the last step was complete."""
        return int(self.end.max(initial=0))

    @cached_property
    def order(self) -> Column:
        """The steps by their start, ties in program order: a legal order."""
        return np.lexsort((np.arange(self.steps.count), self.start))

    @cached_property
    def stalls(self) -> Stalls:
        """What each step waited for, from when it would have been reached to its start."""
        reached, window = _reached_times(self)
        waited = np.maximum(0, self.start - self.ready)
        token = np.clip(self.token_at - self.ready, 0, waited)
        dependence = np.maximum(0, self.ready - reached - window)
        return Stalls(window, dependence, token, waited - token)


def time_steps(
    steps: Steps, device: Device, profile: TimingProfile, *, compile: bool | None = None
) -> Timeline:
    """Run the timed machine. Large plans are compiled where that is possible; `compile` decides."""
    with stage("timing: costs of tasks"):
        placement = place_steps(steps, device, profile)
    return time_placed(steps, device, profile, placement, compile=compile)


def time_placed(
    steps: Steps,
    device: Device,
    profile: TimingProfile,
    placement: Placement,
    *,
    compile: bool | None = None,
) -> Timeline:
    """The same where units and cycles are known."""
    limits = token_limits(_token_limit(steps.plan, device, profile), device.num_engines)
    if compile is None:
        compile = compiled.is_worth_it(steps.count)
    simulated = run_events(steps, placement, limits, compile=compile)
    return Timeline(
        steps,
        device,
        profile,
        placement,
        np.asarray(simulated.ready, np.int64),
        np.asarray(simulated.token_at, np.int64),
        np.asarray(simulated.start, np.int64),
        np.asarray(simulated.end, np.int64),
        np.asarray(simulated.unit, np.int64).reshape(-1, 2),
        np.asarray(simulated.node_time, np.int64),
    )


def _token_limit(plan: Plan, device: Device, profile: TimingProfile) -> int | None:
    """The token limit; None where there is none, or where it is proved that nothing reaches it."""
    limit = profile.get("SEQ", "max_active_tokens")
    if limit is None or len(plan.program.tasks) > _MOST_TASKS_TO_PROVE:
        return limit
    is_harmless = all(live.most <= limit for live in live_tokens(plan, device, limit))
    return None if is_harmless else limit


def run_events(steps: Steps, placement: Placement, limits: list[int], *, compile: bool) -> Columns:
    """The event loop on lists, or compiled on arrays."""
    if steps.count == 0:
        return columns(steps, placement, limits, _as_list)
    # A key of the event heap is a time and a step in one: it must not leave 64 bits.
    fits = float(placement.duration.sum()) * (steps.count + 1) < 2.0**62
    if compile and fits:
        simulated = columns(steps, placement, limits, np.ascontiguousarray)
        with stage("timing: preparing the simulation"):
            simulate = compiled.compile_for(simulated)
        with _event_stage(simulated, steps.count):
            simulate(simulated, steps.count)
    else:
        simulated = columns(steps, placement, limits, _as_list)
        with _event_stage(simulated, steps.count):
            events.simulate(_copy_to_fast_columns(simulated), steps.count)
    return simulated


def _event_stage(simulated: Columns, steps: int) -> AbstractContextManager[None]:
    """The event loop as a stage, by what has started: units may be enough for all at once."""
    return stage("timing", "steps", lambda: (int(simulated.counts[events.STARTED]), steps))


class _FastColumns:
    """The same columns as attributes of an object, which Python finds faster than a tuple's."""

    __slots__ = Columns._fields


def _copy_to_fast_columns(simulated: Columns) -> Columns:
    fast: Any = _FastColumns()
    for name in Columns._fields:
        setattr(fast, name, getattr(simulated, name))
    return cast(Columns, fast)


def _as_list(column: Column) -> Ints:
    return column.tolist()


def _reached_times(timeline: Timeline) -> tuple[Column, Column]:
    """When each step would be reached without windows and waits, and its wait for windows."""
    walk = _ReachedTimes(timeline)
    walk.body(timeline.steps.plan.program.body, TOP, np.zeros(1, np.int64), np.zeros(1, np.int64))
    return walk.reached, walk.window


class _ReachedTimes:
    """Goes through the bodies, on whole columns, with the times at which loops were joined."""

    def __init__(self, timeline: Timeline) -> None:
        self._steps = timeline.steps
        self._time = timeline.node_time
        self.reached = np.zeros(timeline.steps.count, np.int64)
        self.window = np.zeros(timeline.steps.count, np.int64)

    def body(
        self, statements: tuple[Statement, ...], grid: Grid, reached: Column, window: Column
    ) -> None:
        """A body whose iterations are reached at these times and waited so long for windows."""
        graph, grids = self._steps.graph, self._steps.plan.grids
        for statement in statements:
            if not isinstance(statement, Loop):
                rows = self._steps.numbers[statement.position]
                self.reached[rows], self.window[rows] = reached, window
                continue
            inner = grids.get(statement.position)
            if inner is None:
                continue
            first = np.searchsorted(inner.parent_row, np.arange(grid.rows))
            start = self._column(graph.first_start[statement.position], inner.rows)
            # The first iteration waits for no window: it starts when the loop is reached.
            waited = np.maximum(0, start - start[first][inner.parent_row])
            parents = inner.parent_row
            self.body(statement.body, inner, reached[parents], window[parents] + waited)
            last = np.append(first[1:], inner.rows) - 1
            joined = self._column(graph.first_done[statement.position], inner.rows)[last]
            # What a join waits for is the loop's own work, no stall of what follows.
            reached = np.maximum(reached, joined)
            window = np.where(joined >= 0, 0, window)

    def _column(self, first: int, rows: int) -> Column:
        return self._time[first : first + rows]

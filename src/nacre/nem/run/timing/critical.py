"""The critical path: from the last completion back, always to what made a step wait."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nacre.base.term_columns import Column
from nacre.nem.model.program import Task
from nacre.nem.run.timing.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Link:
    """A task on the critical path, and why it started when it did."""

    step: int
    cause: str  # start, window, dependence, token, unit


def critical_path(timeline: Timeline) -> list[Link]:
    """The tasks of the path, first to last."""
    if timeline.steps.count == 0 or timeline.is_stuck:
        return []
    walk = _CauseFinder(timeline)
    step: int | None = int(np.argmax(timeline.end))
    path: list[Link] = []
    while step is not None:
        before, cause = walk.cause(step)
        if isinstance(timeline.steps.statement(step), Task):
            path.append(Link(step, cause))
        step = before
    return path[::-1]


class _CauseFinder:
    def __init__(self, timeline: Timeline) -> None:
        self._t = timeline
        graph = timeline.steps.graph
        self._before = graph.before
        self._step_of = timeline.steps.step_of_node
        self._is_start = self._iteration_events(graph.first_start)
        self._is_done = self._iteration_events(graph.first_done)
        self._by_end = np.argsort(timeline.end, kind="stable")
        self._ends = timeline.end[self._by_end]
        shared = timeline.placement.shared
        self._ddr_until = np.where(shared > 0, timeline.start + shared, -1)

    def _iteration_events(self, first: dict[int, int]) -> npt.NDArray[np.bool_]:
        """Which nodes are an event of a loop's iterations."""
        found = np.zeros(self._step_of.size, np.bool_)
        for position, node in first.items():
            found[node : node + self._t.steps.plan.grids[position].rows] = True
        return found

    def cause(self, step: int) -> tuple[int | None, str]:
        """The step that this one waited for last; None at the very start."""
        t = self._t
        start, ready = int(t.start[step]), int(t.ready[step])
        if start == 0:
            return None, "start"
        if start > ready:
            token_wait = int(t.token_at[step]) == start
            holder = None if token_wait else self._unit_holder(step, start)
            if holder is None and not token_wait and t.placement.shared[step] > 0:
                holder = self._ddr_holder(start)
            if holder is not None:
                return holder, "unit"
            return self._step_ending_at(start, int(t.placement.engine[step])), "token"
        return self._last_dependence(step, ready)

    def _unit_holder(self, step: int, start: int) -> int | None:
        """The task that left the unit as this one took it."""
        for candidate in self._steps_ending(start):
            if set(self._t.unit[candidate].tolist()) & set(self._t.unit[step].tolist()) - {-1}:
                return candidate
        # The unit had been free for longer: another task of the pool had to leave first.
        pools = set(self._t.placement.pool[step].tolist()) - {-1}
        for candidate in self._steps_ending(start):
            if set(self._t.placement.pool[candidate].tolist()) & pools:
                return candidate
        return None

    def _ddr_holder(self, start: int) -> int | None:
        """The copy that gave up DDR's bandwidth then; it may go on for longer itself."""
        found = np.flatnonzero((self._ddr_until == start) & (self._t.start < start))
        return int(found[0]) if found.size else None

    def _step_ending_at(self, time: int, engine: int) -> int | None:
        found = self._steps_ending(time)
        own = [s for s in found if int(self._t.placement.engine[s]) == engine]
        return (own or found or [None])[0]  # type: ignore[list-item]

    def _steps_ending(self, time: int) -> list[int]:
        low, high = np.searchsorted(self._ends, [time, time + 1])
        return [int(s) for s in self._by_end[low:high] if self._t.start[s] < time]

    def _last_dependence(self, step: int, ready: int) -> tuple[int | None, str]:
        """A step that ended when this one became ready, found through gates and iterations."""
        cause = "dependence"
        times: Column = self._t.node_time
        node = int(self._t.steps.node[step])
        while True:
            at = [s for s in self._before.of(node) if times[s] == ready]
            if not at:
                return None, cause
            steps = [int(self._step_of[s]) for s in at if self._step_of[s] >= 0]
            tasks = [s for s in steps if self._t.start[s] < ready]
            if tasks:
                return tasks[0], cause
            if self._is_start[node] and self._is_done[at[0]]:
                cause = "window"
            node = at[0]

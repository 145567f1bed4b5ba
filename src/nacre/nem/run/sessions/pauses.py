"""The breakpoints and watchpoints of a session, and whether one of them holds a run up now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nacre.nem.run.sessions.stops import Breakpoint, Watchpoint

if TYPE_CHECKING:
    from nacre.nem.run.memory.task_footprints import TaskFootprints
    from nacre.nem.run.sessions.inspection import Inspection
    from nacre.nem.run.sessions.stepper import Stepper


class Pauses:
    """What a run is held up by. A stop that has been reported lets the next run pass."""

    def __init__(self, stepper: Stepper, footprints: TaskFootprints) -> None:
        self._stepper = stepper
        self._footprints = footprints
        self.breakpoints: list[Breakpoint] = []
        self.watchpoints: list[Watchpoint] = []
        self._passed: int | None = None  # the step before which a stop has been reported
        self._admitted: Breakpoint | None = None  # to be reported before the next step

    def __bool__(self) -> bool:
        return bool(self.breakpoints or self.watchpoints)

    def all_stops(self) -> list[Breakpoint | Watchpoint]:
        """All of them, in the order in which they were set."""
        return sorted([*self.breakpoints, *self.watchpoints], key=lambda stop: stop.number)

    def remove(self, number: int) -> bool:
        """Remove one by its number; False where there is none."""
        before = len(self.all_stops())
        self.breakpoints = [s for s in self.breakpoints if s.number != number]
        self.watchpoints = [s for s in self.watchpoints if s.number != number]
        return len(self.all_stops()) < before

    def clear(self) -> None:
        """Remove all of them."""
        self.breakpoints, self.watchpoints = [], []

    def forget(self, passed: int | None = None) -> None:
        """The session went back, to before the step `passed` if that was the goal."""
        self._passed, self._admitted = passed, None

    def breakpoint_before(self, step: int, session: Inspection) -> Breakpoint | None:
        """The breakpoint that holds up the run before a step."""
        admitted, self._admitted = self._admitted, None
        if admitted is not None:
            return admitted
        if self._passed == step:
            return None
        if not self._stepper.order:
            admitted = self._breakpoint_at_start(session)
        here = admitted or self._breakpoint_at(step, session)
        if here is not None:
            self._passed = step
        return here

    def _breakpoint_at(self, step: int, session: Inspection) -> Breakpoint | None:
        for stop in self.breakpoints:
            is_here = stop.loop_iter is None and stop.matches(self._stepper.steps, step)
            if is_here and (stop.condition is None or stop.condition(session)):
                return stop
        return None

    def watchpoint_after(
        self, step: int, completed: list[int], session: Inspection
    ) -> Watchpoint | None:
        """The watchpoint that a step set off; an iteration that it admitted is kept in mind."""
        self._passed = None
        self._admitted = self._admission(completed, session)
        for watch in self.watchpoints:
            is_touched = watch.matches(self._stepper.steps, step, self._footprints)
            if is_touched and (watch.condition is None or watch.condition(session)):
                return watch
        return None

    def _breakpoint_at_start(self, session: Inspection) -> Breakpoint | None:
        """A breakpoint on an iteration that is admitted before any step runs."""
        frontier, graph = self._stepper.frontier, self._stepper.steps.graph
        grids = self._stepper.steps.plan.grids
        nodes = [
            first + row
            for position, first in graph.first_start.items()
            for row in range(grids[position].rows)
            if frontier.is_done(first + row)
        ]
        return self._admission(nodes, session)

    def _admission(self, nodes: list[int], session: Inspection) -> Breakpoint | None:
        """The breakpoint on an iteration that one of these nodes of the graph admits."""
        wanted = [stop for stop in self.breakpoints if stop.loop_iter is not None]
        if not wanted:
            return None
        steps = self._stepper.steps
        for position, first in steps.graph.first_start.items():
            grid = steps.plan.grids[position]
            rows = [node - first for node in nodes if first <= node < first + grid.rows]
            values = {int(grid.values[-1][row]) for row in rows}
            for stop in wanted:
                if stop.loop_iter in values and (stop.condition is None or stop.condition(session)):
                    return stop
        return None

"""A session's stops: breakpoints and watchpoints, set and taken off by its user."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal

from nacre.nem.run.memory.host import host_error, whole_number
from nacre.nem.run.memory.regions import UnknownNameError
from nacre.nem.run.memory.task_footprints import TaskFootprints
from nacre.nem.run.sessions.conditions import CurrentValues
from nacre.nem.run.sessions.inspection import Inspection
from nacre.nem.run.sessions.pauses import Pauses
from nacre.nem.run.sessions.references import Selection
from nacre.nem.run.sessions.steps import Steps
from nacre.nem.run.sessions.stops import (
    Breakpoint,
    Condition,
    Watchpoint,
    line_with_step,
    require_task,
)
from nacre.nem.run.sessions.value_expressions import Condition as ParsedCondition


class Pausable(Inspection):
    """A run that can be told where to pause."""

    @cached_property
    def _footprints(self) -> TaskFootprints:
        return TaskFootprints(self.plan)

    @cached_property
    def _pauses(self) -> Pauses:
        return Pauses(self._stepper, self._footprints)

    def add_breakpoint(
        self,
        task: str | None = None,
        line: int | None = None,
        loop_iter: int | None = None,
        condition: Condition | str | None = None,
    ) -> Breakpoint:
        """Pause before a task or line, when a loop admits an iteration, or on a condition.

        A condition is a function of the session, or text such as `i mod 2 == 1 and j > 0`.
        """
        stop = self._make_breakpoint(task, line, loop_iter, condition)
        self._pauses.breakpoints.append(stop)
        return stop

    def _make_breakpoint(
        self,
        task: str | None,
        line: int | None,
        loop_iter: int | None,
        condition: Condition | str | None,
    ) -> Breakpoint:
        if task is None and line is None and loop_iter is None and condition is None:
            raise host_error("a stop needs a task, a line, an iteration or a condition")
        if task is not None:
            self._require(require_task, task)
        if line is not None:
            line = self._breakpoint_line(line)
        if loop_iter is not None:
            whole_number(loop_iter, "the iteration")
        if not (condition is None or isinstance(condition, str) or callable(condition)):
            raise host_error("a condition is text or a function of the session")
        asked = self._parse_step_condition(condition) if isinstance(condition, str) else condition
        return Breakpoint(task, line, loop_iter, asked)

    def _breakpoint_line(self, line: int) -> int:
        """The line itself or, where no task or wait stands on it, the next one that has one."""
        try:
            return line_with_step(self.steps, line)
        except UnknownNameError as error:
            raise host_error(str(error)) from None

    def _parse_step_condition(self, text: str) -> Condition:
        """The condition of a breakpoint: about the step that comes next."""
        parsed = self._parse_condition(text)
        # Of the session that asks: a debugger that begins again takes its stops along.
        return lambda session: parsed.holds(CurrentValues(session.scope, session._stepper.next()))

    def _parse_condition(self, text: str, watched: Selection | None = None) -> ParsedCondition:
        try:
            return self.scope.condition(text, watched)
        except UnknownNameError as error:
            raise host_error(str(error)) from None

    def _watch_condition(
        self, condition: Condition | str | None, watched: Selection | None
    ) -> Condition | None:
        """The condition of a watchpoint: about the step that has been taken."""
        if not (condition is None or isinstance(condition, str) or callable(condition)):
            raise host_error("a condition is text or a function of the session")
        if not isinstance(condition, str):
            return condition
        parsed = self._parse_condition(condition, watched)

        def holds(session: Pausable) -> bool:
            return parsed.holds(CurrentValues(session.scope, session._stepper.order[-1], watched))

        return holds

    def loop_variables(self) -> dict[str, int]:
        """The loop variables of the step that comes next."""
        step = self._stepper.next()
        if step is None:
            return {}
        loops = self.steps.statement(step).loops
        values = self.steps.iteration(step)
        return {loop.variable.name: v for loop, v in zip(loops, values, strict=True)}

    def add_watchpoint(
        self,
        region: str | Selection | None = None,
        token: str | None = None,
        access: Literal["read", "write", "any"] = "write",
        condition: Condition | str | None = None,
    ) -> Watchpoint:
        """Pause after a step that writes (reads, touches) a region, or satisfies a token.

        A bare name means the region in the iteration that comes next. A condition is a function of
        the session, or text such as `max > 100`, about the region, or `Y[0, 0] > 3 and i == 1`.
        """
        if (region is None) == (token is None):
            raise host_error("a watchpoint needs either a region or a token")
        if access not in ("read", "write", "any"):
            raise host_error(f"access is `{access}`, expected `read`, `write` or `any`")
        if token is not None:
            self._require(require_task, token)
        is_text = not (region is None or isinstance(region, Selection))
        selected = self.select(str(region), looks_ahead=True) if is_text else region
        watched = selected if isinstance(selected, Selection) else None
        stop = Watchpoint(watched, token, access, self._watch_condition(condition, watched))
        self._pauses.watchpoints.append(stop)
        return stop

    def stops(self) -> list[Breakpoint | Watchpoint]:
        """The breakpoints and watchpoints that are set."""
        return self._pauses.all_stops()

    def remove_stop(self, number: int) -> bool:
        """Remove a breakpoint or watchpoint by its number; False where there is none."""
        return self._pauses.remove(number)

    def clear_stops(self) -> None:
        """Remove all breakpoints and watchpoints."""
        self._pauses.clear()

    def _require(self, check: Callable[[Steps, Any], None], value: object) -> None:
        try:
            check(self.steps, value)
        except UnknownNameError as error:
            raise host_error(str(error)) from None

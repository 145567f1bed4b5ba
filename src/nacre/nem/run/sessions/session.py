"""A session: one run of a program, step by step, forwards and backwards."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import overload

from nacre.base.diagnostics import Diagnostic
from nacre.base.stages import is_watched, stage
from nacre.nem.model.program import Loop, Task
from nacre.nem.run.memory.arrays import RegionView
from nacre.nem.run.memory.host import host_error, whole_number
from nacre.nem.run.sessions import state
from nacre.nem.run.sessions.pausable import Pausable
from nacre.nem.run.sessions.steps import Steps
from nacre.nem.run.sessions.stops import Condition, Watchpoint, require_task
from nacre.nem.run.timing.result import TimedResult

# Steps taken at once; fewer where somebody watches, for a step may take a while.
_CHUNK, _WATCHED_CHUNK = 8192, 64


@dataclass(frozen=True)
class RunResult:
    """How a run, or a part of one, ended."""

    status: str  # completed, error; for a part also breakpoint, watchpoint, paused
    diagnostics: tuple[Diagnostic, ...] = ()
    reason: str | None = None  # why it paused
    tasks: int = 0  # task instances that ran so far
    cycle_count: int | None = None  # of timed runs
    session: Session | None = field(default=None, repr=False, compare=False)

    @property
    def timing(self) -> TimedResult | None:
        """The figures of a timed run."""
        return self.session.timing if self.session is not None else None

    def read_buffer(self, name: str) -> bytes:
        """A buffer's bytes after the run."""
        return self._session_or_error.read_buffer(name)

    def read_region(self, name: str) -> RegionView:
        """A region's elements after the run."""
        return self._session_or_error.read_region(name)

    @property
    def _session_or_error(self) -> Session:
        if self.session is None:
            raise RuntimeError("this result has no session")
        return self.session


class Session(Pausable):
    """One run of a program, driven by its user."""

    def __enter__(self) -> Session:
        return self

    # Forwards

    @overload
    def step(self, n: None = None) -> state.StepResult: ...
    @overload
    def step(self, n: int) -> list[state.StepResult]: ...
    def step(self, n: int | None = None) -> state.StepResult | list[state.StepResult]:
        """Run the next task or wait; with `n`, up to so many, as a list."""
        if n is None:
            return self._step()
        results: list[state.StepResult] = []
        for _ in range(_step_count(n)):
            result = self._step()
            if result.status == "finished":
                break
            results.append(result)
            if result.status == "error":
                break
        return results

    def _step(self) -> state.StepResult:
        self.memory.require_open()
        step = self._stepper.next()
        if step is None:
            self._stepper.explain_illegal_order()
            status = "error" if self._stepper.failed is not None else "finished"
            return state.StepResult(None, None, status, diagnostics=self.diagnostics)
        before = len(self._findings.diagnostics)
        completed = self._stepper.take(step)
        findings = tuple(self._findings.diagnostics[before:])
        return state.step_result(self.steps, step, self._status_of(step, completed), findings)

    def _status_of(self, step: int, completed: list[int] | None) -> str:
        """How a step stands that was just taken: a timed one may only have started."""
        if completed is None:
            return "error"
        if self.timing is None or self._stepper.is_finished:
            return "completed"
        timeline = self.timing.timeline
        return "waiting" if timeline.end[step] > timeline.start[step] else "completed"

    def run(self, progress: Callable[[int, int], None] | None = None) -> RunResult:
        """Run to the next breakpoint or watchpoint, or to the end."""
        self.memory.require_open()
        if not self._pauses:
            chunk = _WATCHED_CHUNK if progress is not None or is_watched() else _CHUNK
            with self._run_stage():
                while not self._stepper.is_finished and self._stepper.failed is None:
                    self._stepper.take_many(chunk)
                    if progress is not None:
                        progress(len(self._stepper.order), self.steps.count)
            return self._result()
        return self._run_while(lambda: True)

    def _run_stage(self) -> AbstractContextManager[None]:
        order, total = self._stepper.order, self.steps.count
        return stage("running", "steps", lambda: (len(order), total))

    def continue_(self) -> RunResult:
        """Go on after a breakpoint."""
        return self.run()

    def run_until(self, token: str) -> RunResult:
        """Run until the next instance of a token is satisfied, or until `token[i]` is.

        In a timed session that is when a step starts at or after its task's end.
        """
        self._require(require_task, token)
        order, watch = self._stepper.order, Watchpoint(token=token)
        instance = self.steps.find_instance(token) if "[" in token else None
        if instance is not None and instance in set(order) and self._is_complete(instance):
            return self._result("paused", f"`{token}` is satisfied already")
        waited_for = [s for s in self._in_flight if watch.matches(self.steps, s, self._footprints)]
        seen = len(order)

        def go_on() -> bool:
            nonlocal seen
            if len(order) > seen and watch.matches(self.steps, order[-1], self._footprints):
                waited_for.append(order[-1])
            seen = len(order)
            return not any(self._is_complete(step) for step in waited_for)

        result = self._run_while(go_on)
        return result if go_on() else self._result("paused", f"`{token}` is satisfied")

    def step_iteration(self) -> RunResult:
        """Run until the current iteration of the innermost active loop is complete.

        Before a loop: until its first iteration is.
        """
        before = self._run_while(lambda: self._next_loop() is None)
        step, loop = self._stepper.next(), self._next_loop()
        if step is None or loop is None:
            return before
        left = state.steps_of_same_iteration(self.steps, step, loop)
        frontier, node = self._stepper.frontier, self.steps.node

        def go_on() -> bool:
            while left and frontier.is_done(int(node[left[-1]])) and self._is_complete(left[-1]):
                left.pop()
            return bool(left)

        result = self._run_while(go_on)
        if not left:
            return self._result("paused", f"{_describe_iteration(self.steps, step)} is complete")
        return result

    def _next_loop(self) -> Loop | None:
        """The innermost loop of the step that comes next."""
        step = self._stepper.next()
        loops = self.steps.statement(step).loops if step is not None else ()
        return loops[-1] if loops else None

    def _run_while(self, go_on: Callable[[], bool]) -> RunResult:
        """Take steps while a condition holds and no stop is met."""
        self.memory.require_open()
        with self._run_stage():
            return self._steps_while(go_on)

    def _steps_while(self, go_on: Callable[[], bool]) -> RunResult:
        while go_on():
            step = self._stepper.next()
            if step is None:
                self._stepper.explain_illegal_order()
                break
            stop = self._pauses.breakpoint_before(step, self)
            if stop is not None:
                return self._result("breakpoint", f"breakpoint {stop.number}: {stop}")
            completed = self._stepper.take(step)
            if completed is None:
                break
            watch = self._pauses.watchpoint_after(step, completed, self)
            if watch is not None:
                reason = f"watchpoint {watch.number}: {watch} by {self.steps.name(step)}"
                return self._result("watchpoint", reason)
        return self._result()

    def _result(self, status: str | None = None, reason: str | None = None) -> RunResult:
        is_over = self.status in ("finished", "error")
        if status is None or (is_over and status == "paused" and self.status == "error"):
            names = {"finished": "completed", "running": "paused", "ready": "paused"}
            status = names.get(self.status, self.status)
        tasks = len(self._stepper.order) - self._count_waits()
        cycles = self.timing.cycles_of(self._stepper.order) if self.timing is not None else None
        return RunResult(status, self.diagnostics, reason, tasks, cycles, self)

    def _count_waits(self) -> int:
        waits = {p for p, s in self.steps.statements.items() if not isinstance(s, Task)}
        if not waits:
            return 0
        return sum(int(self.steps.position[step]) in waits for step in self._stepper.order)

    # Backwards

    def step_back(self, n: int = 1) -> list[str]:
        """Take steps back; the names of those that were, fewer at the start of what is kept."""
        self.memory.require_open()
        taken_back = []
        for _ in range(_step_count(n)):
            step = self._stepper.step_back()
            if step is None:
                break
            taken_back.append(self.steps.name(step))
        self._pauses.forget()
        return taken_back

    def run_back_until(
        self,
        task: str | None = None,
        line: int | None = None,
        token: str | None = None,
        region: str | None = None,
        condition: Condition | str | None = None,
        pause: Callable[[], bool] | None = None,
    ) -> RunResult:
        """Go back until before a step of a task or line, or before a region was last written.

        `pause` is asked after every step whether to stay there.
        """
        self.memory.require_open()
        if token is not None:
            task = token
        if region is not None and (task, line, condition) != (None, None, None):
            raise host_error("going back is until a region was written, or until a task or line")
        stop = self._make_breakpoint(task, line, None, condition) if region is None else None
        watch = Watchpoint(region=self.select(region)) if region is not None else None
        while (step := self._stepper.step_back()) is not None:
            if watch is not None and watch.matches(self.steps, step, self._footprints):
                return self._pause_before(step)
            is_here = stop is not None and stop.matches(self.steps, step)
            if stop is not None and is_here and (stop.condition is None or stop.condition(self)):
                return self._pause_before(step)
            if pause is not None and pause():
                return self._pause_before(step, "interrupted")
        at_start = not self._stepper.order
        where = "the start" if at_start else "the start of what the undo log keeps"
        return self._result("paused", f"back at {where}")

    def _pause_before(self, step: int, reason: str | None = None) -> RunResult:
        self._pauses.forget(passed=step)
        return self._result("paused", reason or f"back before {self.steps.name(step)}")


def _step_count(value: object) -> int:
    """How many steps a caller means."""
    number = whole_number(value, "the number of steps")
    if number < 0:
        raise host_error(f"the number of steps is {number}, expected 0 or more")
    return number


def _describe_iteration(steps: Steps, step: int) -> str:
    loop = steps.statement(step).loops[-1]
    return f"iteration {loop.variable.name}={steps.iteration(step)[-1]}"

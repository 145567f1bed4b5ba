"""A session: one run of a program, step by step, observable and reversible."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, overload

import numpy as np

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.nem.model.devices import Device
from nacre.nem.model.program import Loop, Task
from nacre.nem.plan.plan import Plan
from nacre.nem.run import state, tables
from nacre.nem.run.arrays import RegionView
from nacre.nem.run.conditions import condition as parsed_condition
from nacre.nem.run.findings import Findings
from nacre.nem.run.history import History
from nacre.nem.run.host import Host, host_error, whole_number
from nacre.nem.run.machine import Machine
from nacre.nem.run.memory import Memory
from nacre.nem.run.options import RunOptions
from nacre.nem.run.pauses import Pauses
from nacre.nem.run.provenance import Written, who_wrote
from nacre.nem.run.races import RaceDetector
from nacre.nem.run.regions import Located, UnknownNameError, locate
from nacre.nem.run.schedules import (
    ProgramOrder,
    RandomOrder,
    RecordedOrder,
    Schedule,
    TimedOrder,
)
from nacre.nem.run.stepper import Stepper
from nacre.nem.run.steps import Steps, steps_of
from nacre.nem.run.stops import Breakpoint, Condition, Watchpoint, require_line, require_task
from nacre.nem.run.timing.export import export_timed
from nacre.nem.run.timing.result import TimedResult
from nacre.nem.run.timing.status import deadlock, engine_states
from nacre.nem.run.timing.text import trace_table as timed_trace_table
from nacre.nem.run.touching import Touching
from nacre.nem.run.trace import export_trace
from nacre.nem.spec.rules.running import RUN08

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
        return self._ran.timing

    def read_buffer(self, name: str) -> bytes:
        """A buffer's bytes after the run."""
        return self._ran.read_buffer(name)

    def read_region(self, name: str) -> RegionView:
        """A region's elements after the run."""
        return self._ran.read_region(name)

    @property
    def _ran(self) -> Session:
        if self.session is None:
            raise RuntimeError("this result has no session")
        return self.session


class Session(AbstractContextManager["Session"]):
    """One run of a program. L2 and L1 belong to it; DDR belongs to whoever started it."""

    def __init__(
        self,
        plan: Plan,
        device: Device,
        memory: Memory,
        options: RunOptions,
        timing: TimedResult | None = None,
    ) -> None:
        self.plan = plan
        self.device = device
        self.options = options
        self.memory = memory
        self.timing = timing  # of a timed run: its order is the order of the starts
        self.steps: Steps = timing.timeline.steps if timing is not None else steps_of(plan)
        self._findings = Findings(plan.program, strict=options.strict)
        self._races = RaceDetector(self.steps) if options.detect_races else None
        self._stepper = Stepper(
            self.steps,
            Machine(plan, memory, options.backends, self._findings, ordered=options.ordered),
            _schedule(self.steps, options, timing),
            History(options.history_bytes) if options.history_bytes else None,
            self._races,
        )
        self._host = Host(plan.program, memory, self._findings, self._stepper)
        self._host.fill(options.inputs)
        self._touching = Touching(plan)
        self._pauses = Pauses(self._stepper, self._touching)
        if timing is not None and timing.waiting:
            self._report_deadlock(timing)

    def _report_deadlock(self, timing: TimedResult) -> None:
        """Tasks that wait for tokens which nobody releases: nothing is run."""
        step = int(np.flatnonzero(timing.timeline.start < 0)[0])
        self._findings.diagnostics.append(deadlock(timing, step))
        self._stepper.failed = step

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the session's memories; what was read stays."""
        self.memory.release()

    # How it stands

    @property
    def status(self) -> str:
        """`ready`, `running`, `finished` or `error`."""
        if self._stepper.failed is not None:
            return "error"
        if self._stepper.is_finished:
            return "finished"
        return "running" if self._stepper.order else "ready"

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What the run has brought up so far."""
        races = self._races.diagnostics if self._races is not None else []
        return (*self._findings.diagnostics, *races)

    @property
    def order(self) -> list[str]:
        """The instances that ran, by name: what `order=` takes to run them so again."""
        return [self.steps.name(step) for step in self._stepper.order]

    @property
    def next_step(self) -> str | None:
        """The name of the step that comes next."""
        step = self._stepper.next()
        return None if step is None else self.steps.name(step)

    @property
    def next_line(self) -> int | None:
        """The line of the step that comes next."""
        step = self._stepper.next()
        return None if step is None else self.steps.line(step)

    def get_state(self) -> state.ExecutionState:
        """A snapshot: iteration, tokens, loops."""
        engines = {} if self.timing is None else engine_states(self.timing, self._stepper.order)
        return state.snapshot(self._stepper, self.status, engines)

    def get_tokens(self) -> dict[str, dict[str, Any]]:
        """Tokens by instance and by bare name, which means the latest instance."""
        return state.tokens(self._stepper)

    def get_pending_tasks(self) -> list[str]:
        """Tasks of admitted iterations that wait for something."""
        return state.pending(self._stepper)

    def get_ready_tasks(self) -> list[str]:
        """Tasks that could run now."""
        return state.ready(self._stepper)

    def get_completed_tasks(self) -> list[str]:
        """Tasks that ran, in their order."""
        return state.completed(self._stepper)

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
        for _ in range(whole_number(n, "the number of steps")):
            result = self._step()
            if result.status == "finished":
                break
            results.append(result)
            if result.status == "error":
                break
        return results

    def _step(self) -> state.StepResult:
        step = self._stepper.next()
        if step is None:
            self._stepper.explain_illegal_order()
            status = "error" if self._stepper.failed is not None else "finished"
            return state.StepResult(None, None, status, diagnostics=self.diagnostics)
        before = len(self._findings.diagnostics)
        completed = self._stepper.take(step)
        found = tuple(self._findings.diagnostics[before:])
        return state.step_result(
            self.steps, step, "error" if completed is None else "completed", found
        )

    def run(self, progress: Callable[[int, int], None] | None = None) -> RunResult:
        """Run to the next breakpoint or watchpoint, or to the end."""
        if not self._pauses:
            while not self._stepper.is_finished and self._stepper.failed is None:
                self._stepper.take_many(_CHUNK if progress is None else _WATCHED_CHUNK)
                if progress is not None:
                    progress(len(self._stepper.order), self.steps.count)
            return self._result()
        return self._run_while(lambda: True)

    def continue_(self) -> RunResult:
        """Go on after a breakpoint."""
        return self.run()

    def run_until(self, token: str) -> RunResult:
        """Run until the next instance of a token is satisfied, or until `token[i]` is."""
        self._require(require_task, token)
        watch = Watchpoint(token=token)
        reached = False

        def go_on() -> bool:
            nonlocal reached
            order = self._stepper.order
            reached = (
                bool(order)
                and len(order) > begun
                and watch.matches(self.steps, order[-1], self._touching)
            )
            return not reached

        begun = len(self._stepper.order)
        instance = self.steps.instance(token) if "[" in token else None
        if instance is not None and instance in set(self._stepper.order):
            return self._result("paused", f"`{token}` is satisfied already")
        result = self._run_while(go_on)
        return self._result("paused", f"`{token}` is satisfied") if reached else result

    def step_iteration(self) -> RunResult:
        """Run until the current iteration of the innermost active loop is complete.

        Before a loop: until its first iteration is.
        """
        before = self._run_while(lambda: self._next_loop() is None)
        step, loop = self._stepper.next(), self._next_loop()
        if step is None or loop is None:
            return before
        left = [int(self.steps.node[s]) for s in state.steps_beside(self.steps, step, loop)]
        frontier = self._stepper.frontier

        def go_on() -> bool:
            while left and frontier.is_done(left[-1]):
                left.pop()
            return bool(left)

        result = self._run_while(go_on)
        if not left:
            return self._result("paused", f"{_iteration(self.steps, step)} is complete")
        return result

    def _next_loop(self) -> Loop | None:
        """The innermost loop of the step that comes next."""
        step = self._stepper.next()
        loops = self.steps.statement(step).loops if step is not None else ()
        return loops[-1] if loops else None

    def _run_while(self, go_on: Callable[[], bool]) -> RunResult:
        """Take steps while a condition holds and no stop is met."""
        while go_on():
            step = self._stepper.next()
            if step is None:
                self._stepper.explain_illegal_order()
                break
            stop = self._pauses.before(step, self)
            if stop is not None:
                return self._result("breakpoint", f"breakpoint {stop.number}: {stop}")
            completed = self._stepper.take(step)
            if completed is None:
                break
            watch = self._pauses.after(step, completed, self)
            if watch is not None:
                reason = f"watchpoint {watch.number}: {watch} by {self.steps.name(step)}"
                return self._result("watchpoint", reason)
        return self._result()

    def _result(self, status: str | None = None, reason: str | None = None) -> RunResult:
        is_over = self.status in ("finished", "error")
        if status is None or (is_over and status == "paused" and self.status == "error"):
            names = {"finished": "completed", "running": "paused", "ready": "paused"}
            status = names.get(self.status, self.status)
        tasks = len(self._stepper.order) - self._waits_taken()
        cycles = self.timing.cycles if self.timing is not None else None
        return RunResult(status, self.diagnostics, reason, tasks, cycles, self)

    def _waits_taken(self) -> int:
        waits = {p for p, s in self.steps.statements.items() if not isinstance(s, Task)}
        if not waits:
            return 0
        return sum(int(self.steps.position[step]) in waits for step in self._stepper.order)

    # Backwards

    def step_back(self, n: int = 1) -> list[str]:
        """Take steps back; the names of those that were, fewer at the start of what is kept."""
        taken_back = []
        for _ in range(n):
            step = self._stepper.back()
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
    ) -> RunResult:
        """Go back until before a step of a task or line, or before a region was last written."""
        if token is not None:
            task = token
        stop = self._made_breakpoint(task, line, None, condition) if region is None else None
        watch = Watchpoint(region=self.locate(region)) if region is not None else None
        while (step := self._stepper.back()) is not None:
            if watch is not None and watch.matches(self.steps, step, self._touching):
                return self._back_at(step)
            is_here = stop is not None and stop.matches(self.steps, step)
            if stop is not None and is_here and (stop.condition is None or stop.condition(self)):
                return self._back_at(step)
        at_start = not self._stepper.order
        where = "the start" if at_start else "the start of what the undo log keeps"
        return self._result("paused", f"back at {where}")

    def _back_at(self, step: int) -> RunResult:
        self._pauses.forget(passed=step)
        return self._result("paused", f"back before {self.steps.name(step)}")

    # Stops

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
        made = self._made_breakpoint(task, line, loop_iter, condition)
        self._pauses.breakpoints.append(made)
        return made

    def _made_breakpoint(
        self,
        task: str | None,
        line: int | None,
        loop_iter: int | None,
        condition: Condition | str | None,
    ) -> Breakpoint:
        if task is None and line is None and loop_iter is None and condition is None:
            raise host_error("a breakpoint needs a task, a line, an iteration or a condition")
        if task is not None:
            self._require(require_task, task)
        if line is not None:
            self._require(require_line, line)
        if loop_iter is not None:
            whole_number(loop_iter, "the iteration")
        if not (condition is None or isinstance(condition, str) or callable(condition)):
            raise host_error("a condition is text or a function of the session")
        asked = self._condition(condition) if isinstance(condition, str) else condition
        return Breakpoint(task, line, loop_iter, asked)

    def _condition(self, text: str) -> Condition:
        try:
            loops = {loop.variable.name for loop in self.plan.program.loops}
            holds = parsed_condition(text, self.plan.program.constants, loops)
        except UnknownNameError as error:
            raise host_error(str(error)) from None
        return lambda session: holds(session.loop_variables())

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
        region: str | None = None,
        token: str | None = None,
        access: Literal["read", "write", "any"] = "write",
    ) -> Watchpoint:
        """Pause after a step that writes (reads, touches) a region, or satisfies a token."""
        if (region is None) == (token is None):
            raise host_error("a watchpoint needs either a region or a token")
        if access not in ("read", "write", "any"):
            raise host_error(f"access is `{access}`, expected `read`, `write` or `any`")
        if token is not None:
            self._require(require_task, token)
        located = self.locate(region) if region is not None else None
        made = Watchpoint(located, token, access)
        self._pauses.watchpoints.append(made)
        return made

    def stops(self) -> list[Breakpoint | Watchpoint]:
        """The breakpoints and watchpoints that are set."""
        return self._pauses.listed()

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

    # Memory

    def locate(self, name: str) -> Located:
        """The bytes that a region's name means now."""
        try:
            return locate(name, self.steps, self._stepper.order)
        except UnknownNameError as error:
            raise host_error(str(error)) from None

    def read_memory(
        self, level: str, offset: int = 0, size: int | None = None, engine: int | None = None
    ) -> bytes:
        """Raw bytes of DDR, L2 or the L1 of an engine."""
        return self._host.read_memory(level, offset, size, engine)

    def read_region(self, name: str) -> RegionView:
        """A region's elements, as an array of its type and shape."""
        return self._host.read_region(self.locate(name))

    def read_buffer(self, name: str) -> bytes:
        """A buffer's bytes."""
        return self._host.read_buffer(name)

    def write_buffer(self, name: str, array: object) -> None:
        """Fill a buffer (or from `NAME@OFFSET` on, a part of it) with an array's bytes."""
        self._host.write_buffer(name, array)

    def write_buffers(self, inputs: Mapping[str, Any]) -> None:
        """Fill several buffers."""
        self._host.fill(inputs)

    def who_wrote(self, name: str) -> list[Written]:
        """The last writer of every byte of a region or buffer."""
        located = self.locate(name)
        storage = self.memory.storage(located.buffer)
        order, hosts = self._stepper.order, self._stepper.host_writes
        return who_wrote(located, self.steps, order, hosts, storage)

    # Pictures

    def dump_buffers(self) -> None:
        """Print the buffer map."""
        sys.stdout.write(tables.buffer_table(self.plan.program, self.memory) + "\n")

    def dump_region(self, name: str) -> None:
        """Print a region's place, type and first bytes."""
        sys.stdout.write(tables.region_text(self.locate(name), self.memory) + "\n")

    def dump_trace(self) -> None:
        """Print the steps taken."""
        order = self._stepper.order
        if self.timing is not None:
            sys.stdout.write(timed_trace_table(self.timing, order) + "\n")
        else:
            sys.stdout.write(tables.trace_table(self.steps, order) + "\n")

    def export_trace(self, path: str | Path) -> None:
        """Write the steps taken to a .json or .csv file."""
        try:
            if self.timing is not None:
                export_timed(self.timing, self._stepper.order, Path(path))
            else:
                export_trace(self.steps, self._stepper.order, Path(path))
        except ValueError as error:
            raise host_error(str(error)) from None
        except OSError as error:
            raise host_error(f"cannot write `{path}`: {error.strerror}") from None

    def __repr__(self) -> str:
        taken, total = len(self._stepper.order), self.steps.count
        following = f", next {self.next_step}" if self.next_step is not None else ""
        name = self.plan.program.source.name
        found = f", {len(self.diagnostics)} findings" if self.diagnostics else ""
        return f"<Session {name}: {self.status}, {taken} of {total} steps{following}{found}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the state as a small table."""
        rows = (
            ("status", self.status),
            ("steps", f"{len(self._stepper.order)} of {self.steps.count}"),
            ("next", self.next_step or "-"),
            ("findings", len(self.diagnostics)),
        )
        return tables.session_html(f"Session {self.plan.program.source.name}", rows)


def _schedule(steps: Steps, options: RunOptions, timing: TimedResult | None) -> Schedule:
    if timing is not None:
        return TimedOrder(timing.timeline.order.tolist())
    if options.order is not None:
        return RecordedOrder(_steps_named(steps, options.order))
    if options.scheduling == "random":
        return RandomOrder(options.seed)
    return ProgramOrder()


def _steps_named(steps: Steps, names: Sequence[str]) -> list[int]:
    found, unknown = [], []
    seen: dict[str, int] = {}
    for name in names:
        # Sibling loops may use a name again; they run one after the other.
        step = steps.instance(name, seen.get(name, 0))
        seen[name] = seen.get(name, 0) + 1
        if step is None:
            unknown.append(name)
        else:
            found.append(step)
    if unknown:
        span = steps.plan.program.source.span(0, 0)
        message = f"the order names `{unknown[0]}`, which is no task or wait of the program"
        raise InputError([RUN08.at(span, message)])
    return found


def _iteration(steps: Steps, step: int) -> str:
    loop = steps.statement(step).loops[-1]
    return f"iteration {loop.variable.name}={steps.iteration(step)[-1]}"

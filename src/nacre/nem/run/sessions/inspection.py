"""What can be seen of a run: state, tokens, memory, who wrote it, pictures."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.excerpt import backquote
from nacre.nem.model.devices import Device
from nacre.nem.plan.plan import Plan
from nacre.nem.run.machine.findings import Findings
from nacre.nem.run.machine.machine import Machine
from nacre.nem.run.machine.races import RaceDetector
from nacre.nem.run.memory.arrays import RegionView
from nacre.nem.run.memory.host import Host, host_error
from nacre.nem.run.memory.memory import Memory
from nacre.nem.run.memory.regions import LocatedRegion, Moment, Regions, UnknownNameError
from nacre.nem.run.options import RunOptions
from nacre.nem.run.sessions import state, tables
from nacre.nem.run.sessions.conditions import CurrentValues, Scope
from nacre.nem.run.sessions.history import History
from nacre.nem.run.sessions.poison_origins import PoisonOrigins
from nacre.nem.run.sessions.provenance import WrittenRun, who_wrote
from nacre.nem.run.sessions.references import Selection, parse_reference, select
from nacre.nem.run.sessions.schedules import (
    ProgramOrder,
    RandomOrder,
    RecordedOrder,
    Schedule,
    TimedOrder,
)
from nacre.nem.run.sessions.stepper import Stepper
from nacre.nem.run.sessions.steps import Steps, number_steps
from nacre.nem.run.sessions.trace import export_trace
from nacre.nem.run.sessions.value_expressions import Number
from nacre.nem.run.timing.export import export_timed
from nacre.nem.run.timing.result import TimedResult
from nacre.nem.run.timing.status import (
    deadlock_findings,
    engine_states,
    steps_in_flight,
    time_after,
)
from nacre.nem.run.timing.text import trace_table as timed_trace_table
from nacre.nem.spec.rules.running import RUN08

_MOST_REFERENCE = 1024  # characters of a name with its brackets


class Inspection(AbstractContextManager["Inspection"]):
    """A run as an observer sees it. L2 and L1 belong to it; DDR to whoever started it."""

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
        self.steps: Steps = timing.timeline.steps if timing is not None else number_steps(plan)
        self._findings = Findings(plan.program, strict=options.strict)
        self._races = RaceDetector(self.steps) if options.detect_races else None
        self._stepper = Stepper(
            self.steps,
            Machine(
                plan,
                memory,
                options.backends,
                self._findings,
                ordered=options.ordered,
                allowed=options.allowed,
            ),
            _schedule(self.steps, options, timing),
            History(options.history_bytes) if options.history_bytes else None,
            self._races,
            options.constant,
        )
        self._findings.origin = PoisonOrigins(self._stepper).origin_of
        self._host = Host(plan.program, memory, self._findings, self._stepper, options.imports)
        self._host.fill(options.inputs)
        self._host.require_imports()
        self.scope = Scope(Regions(self.steps, self._stepper.order), memory)
        if timing is not None and timing.timeline.is_stuck:
            # Nothing is run where tasks wait for tokens which nobody releases.
            self._findings.diagnostics += deadlock_findings(timing)
            self._stepper.failed = int(np.flatnonzero(timing.timeline.start < 0)[0])

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

    def restart(self, inputs: Mapping[str, Any] | None = None) -> None:
        """Back to the start, with other bytes in some buffers.

        Memories keep what they hold, as those of a device do; what the run found is forgotten. Runs
        of one program after the other are cheaper so: tasks are bound to their bytes once.
        """
        self.memory.require_open()
        self._findings.forget_after(0)
        self._stepper.rewind()
        self._host.fill(inputs or {})

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
    def executed_steps(self) -> Sequence[int]:
        """The same as numbers of steps: the list itself, which grows and shrinks as it runs."""
        return self._stepper.order

    @property
    def next_step(self) -> str | None:
        """The name of the step that comes next."""
        step = self._stepper.next()
        return None if step is None else self.steps.name(step)

    @property
    def next_debug_name(self) -> str | None:
        """What `@debug` calls the step that comes next."""
        step = self._stepper.next()
        return None if step is None else self.steps.debug_name(step)

    @property
    def next_line(self) -> int | None:
        """The line of the step that comes next."""
        step = self._stepper.next()
        return None if step is None else self.steps.line(step)

    def get_state(self) -> state.ExecutionState:
        """A snapshot: iteration, tokens, loops."""
        engines = {} if self.timing is None else engine_states(self.timing, self._stepper.order)
        return state.snapshot(self._progress, self.status, engines)

    @property
    def _progress(self) -> state.Progress:
        """How far the run is: a step of a timed one may have started and not be complete yet."""
        flying = self._in_flight
        if flying:
            return state.progress_at(self.steps, self._stepper.order, flying)
        return state.Progress(self.steps, self._stepper.order, self._stepper.frontier)

    @property
    def _in_flight(self) -> frozenset[int]:
        """Steps that have started and are not complete yet: in timed sessions only."""
        return (
            frozenset()
            if self.timing is None
            else steps_in_flight(self.timing, self._stepper.order)
        )

    def _is_complete(self, step: int) -> bool:
        """Whether a step that has been taken is complete by now."""
        if self.timing is None:
            return True
        return bool(self.timing.timeline.end[step] <= time_after(self.timing, self._stepper.order))

    def get_tokens(self) -> dict[str, dict[str, Any]]:
        """Tokens by instance and by bare name, which means the latest instance."""
        return state.token_states(self._progress)

    def get_pending_tasks(self) -> list[str]:
        """Tasks of admitted iterations that wait for something."""
        return state.pending_tasks(self._progress)

    def get_ready_tasks(self) -> list[str]:
        """Tasks that could run now."""
        return state.ready_tasks(self._progress)

    def get_completed_tasks(self) -> list[str]:
        """Tasks that are complete, in the order of their starts."""
        return state.completed_tasks(self._progress)

    # Memory

    def locate(self, name: str) -> LocatedRegion:
        """The bytes that a region's name means now."""
        try:
            return self.scope.regions.locate(name)
        except UnknownNameError as error:
            raise host_error(str(error)) from None

    def select(self, text: str, *, looks_ahead: bool = False) -> Selection:
        """Some elements of a region: `Y`, `Y[0, :, 3:5]`, in an iteration `Y[2][0, :]`.

        A bare name means the latest iteration; with `looks_ahead` that of the step that comes
        next, which at the border of two iterations is another one.
        """
        regions = self.scope.regions
        step = self._stepper.next() if looks_ahead else None
        try:
            reference = parse_reference(str(text)) if len(str(text)) <= _MOST_REFERENCE else None
            if reference is None:
                raise host_error(f"{backquote(str(text))} is no region, such as `Y` or `Y[0, 3:5]`")
            return select(reference, regions, Moment(regions.latest, step, looks_ahead))
        except UnknownNameError as error:
            raise host_error(str(error)) from None

    def evaluate(self, text: str) -> Number | None:
        """The value of an expression such as `i * tile` or `max(Y)`; None: it has none now."""
        try:
            node = self.scope.expression(str(text))
            return node.value(CurrentValues(self.scope, self._stepper.next()))
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

    def read_selection(self, selection: Selection, *, real: bool = False) -> RegionView:
        """Elements of a region as they are stored or, with `real`, what quantised ones mean."""
        try:
            return self._host.read_selection(selection, real=real)
        except UnknownNameError as error:
            raise host_error(str(error)) from None

    def read_buffer(self, name: str) -> bytes:
        """A buffer's bytes."""
        return self._host.read_buffer(name)

    def peek(self, name: str, begin: int, end: int) -> bytes:
        """What lies in a part of a buffer, whether anybody wrote it or not: no finding says so."""
        return self._host.peek(name, begin, end)

    def write_buffer(self, name: str, array: object) -> None:
        """Fill a buffer (or from `NAME@OFFSET` on, a part of it) with an array's bytes."""
        self._host.write_buffer(name, array)

    def write_buffers(self, inputs: Mapping[str, object]) -> None:
        """The same of several; names and sizes of all are looked at before any is written."""
        self._host.fill(inputs)

    def who_wrote(self, name: str) -> list[WrittenRun]:
        """The last writer of every byte of a region or buffer."""
        located = self.locate(name)
        storage = self.memory.storage(located.buffer)
        order, hosts = self._stepper.order, self._stepper.host_writes
        return who_wrote(located, self.steps, order, hosts, storage)

    # Pictures

    def dump_buffers(self) -> None:
        """Print the buffer map."""
        self.memory.require_open()
        sys.stdout.write(
            tables.buffer_table(self.plan.program, self.memory, self._host.imports) + "\n"
        )

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
                export_timed(self.timing, self._stepper.order, Path(path), self.status)
            else:
                export_trace(self.steps, self._stepper.order, Path(path))
        except ValueError as error:
            raise host_error(str(error)) from None
        except OSError as error:
            raise host_error(f"cannot write `{path}`: {error.strerror}") from error

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
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise host_error("an order is a list of names of instances")
    numbers, unknown = [], []
    seen: dict[str, int] = {}
    for name in names:
        # Sibling loops may use a name again; they run one after the other.
        step = steps.find_instance(str(name), seen.get(name, 0))
        seen[name] = seen.get(name, 0) + 1
        if step is None:
            unknown.append(name)
        else:
            numbers.append(step)
    if unknown:
        span = steps.plan.program.source.span(0, 0)
        message = f"the order names `{unknown[0]}`, which is no task or wait of the program"
        raise InputError([RUN08.at(span, message)])
    return numbers

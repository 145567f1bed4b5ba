"""Taking steps, forwards and backwards: order, schedule, machine and undo log together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property

from nacre.nem.model.program import Task
from nacre.nem.run.machine.actions import Action
from nacre.nem.run.machine.machine import Machine
from nacre.nem.run.machine.races import RaceDetector
from nacre.nem.run.memory.memory import Storage
from nacre.nem.run.sessions.frontier import Frontier
from nacre.nem.run.sessions.history import Change, History, SavedBytes, save_bytes
from nacre.nem.run.sessions.repeated_runs import PreparedCall, RepeatedRuns
from nacre.nem.run.sessions.schedules import ProgramOrder, RecordedOrder, Schedule, TimedOrder
from nacre.nem.run.sessions.steps import Steps
from nacre.nem.spec.rules.running import RUN08

HostWrite = tuple[int, Storage, int, int]  # after so many steps, bytes low..high of a buffer


class Stepper:
    """The moving part of a session."""

    def __init__(
        self,
        steps: Steps,
        machine: Machine,
        schedule: Schedule,
        history: History | None,
        races: RaceDetector | None = None,
        constant: Collection[str] = (),
    ) -> None:
        """`constant` are buffers that the host never changes between runs."""
        self.steps = steps
        self.machine = machine
        self.order: list[int] = []  # the steps taken
        self.host_writes: list[HostWrite] = []
        self.failed: int | None = None  # the step that could not be carried out
        self._schedule = schedule
        self._history = history
        self._races = races
        self._known = _known_order(schedule, steps.count)
        self._frontier: Frontier | None = None
        self._repeats = RepeatedRuns(constant) if constant and self._is_plain else None

    @property
    def _is_plain(self) -> bool:
        """Whether nobody looks at single steps: they are taken in program order."""
        is_watched = self._needs_frontier or self._races is not None
        return isinstance(self._schedule, ProgramOrder) and not is_watched

    @cached_property
    def _actions(self) -> list[bool]:
        """By position, whether a statement is a task (and no wait)."""
        last = max(self.steps.statements, default=-1)
        statements = self.steps.statements
        return [isinstance(statements.get(p), Task) for p in range(last + 1)]

    @property
    def frontier(self) -> Frontier:
        """What may run; built when it is first needed, for program order can do without."""
        if self._frontier is None:
            self._frontier = Frontier(self.steps)
            for step in self.order:
                self._frontier.complete(step)
        return self._frontier

    @property
    def is_finished(self) -> bool:
        """Whether every step has been taken."""
        return len(self.order) == self.steps.count

    def rewind(self) -> None:
        """No step has been taken; what tasks do stays bound to their bytes."""
        if self._repeats is not None:
            self._repeats.begin(was_whole=self.is_finished, steps=self.steps.count)
        self.order.clear()
        self.host_writes.clear()
        self.failed, self._frontier = None, None
        if self._history is not None:
            self._history.clear()

    def next(self) -> int | None:
        """The step that comes next; None at the end, and where an order is not legal."""
        if self.is_finished or self.failed is not None:
            return None
        if self._known is not None:
            return self._known[len(self.order)]
        return self._schedule.choose(self.frontier, len(self.order))

    def steps_before(self, step: int | None) -> list[int]:
        """The steps taken so far; within a chunk that is being run, those before a step."""
        if step is None or self._known is None:
            return self.order
        count = len(self.order)
        try:
            return [*self.order, *self._known[count : self._known.index(step, count)]]
        except ValueError:
            return self.order

    def take(self, step: int) -> list[int] | None:
        """Take a step: the nodes complete by it, or None where it could not be carried out."""
        position, row = int(self.steps.position[step]), int(self.steps.row[step])
        findings = len(self.machine.findings.diagnostics)
        is_task = self._actions[position]
        action, before = self._run_instance(position, row) if is_task else (None, [])
        if is_task and action is None:
            self.failed = step
            return None
        if self._races is not None and action is not None:
            self._races.note_step(step, action.task, row, self.order)
        # Before the step counts as taken: a frontier that is built now replays those that do.
        completed = self.frontier.complete(step) if self._needs_frontier else []
        self.order.append(step)
        if self._history is not None:
            self._history.add(Change(step, before, completed, findings))
        return completed

    def _run_instance(self, position: int, row: int) -> tuple[Action | None, list[SavedBytes]]:
        """Run an instance: what ran and what it overwrote; no action where it could not."""
        before: list[SavedBytes] = []
        try:
            action = self.machine.action(position)
            if self._history is not None and action is not None:
                before = save_bytes(action.writes(row))
            if self._repeats is not None and action is not None:
                self._repeats.note(len(self.order), action, row)
            if action is not None and action.run(row):
                return action, before
        except Exception as error:
            self.machine.explain(position, row, error)
        for part in before:  # a warning that strictness made an error comes after the writes
            part.restore()
        return None, []

    @property
    def _needs_frontier(self) -> bool:
        return self._history is not None or self._frontier is not None

    def take_many(self, most: int) -> bool:
        """Take up to so many steps without looking back; False where one failed."""
        if self._needs_frontier or self._known is None or self._races is not None:
            return self._take_singly(most)
        if self._repeats is not None and self._repeats.recording is not None:
            return self._take_singly(most)
        if self._repeats is not None and self._repeats.calls is not None and not self.order:
            return self._take_calls(self._repeats.calls)
        chunk = self._known[len(self.order) : len(self.order) + most]
        run, is_task = self.machine.run, self._actions
        positions, rows = self.steps.position[chunk].tolist(), self.steps.row[chunk].tolist()
        number, position, row = 0, 0, 0
        try:
            for number, (position, row) in enumerate(zip(positions, rows, strict=True)):
                if is_task[position] and not run(position, row):
                    return self._fail_at(chunk, number)
        except KeyboardInterrupt:  # whoever goes on goes on with this step
            self.order.extend(chunk[:number])
            raise
        except Exception as error:
            self.machine.explain(position, row, error)
            return self._fail_at(chunk, number)
        self.order.extend(chunk)
        return True

    def _take_calls(self, calls: list[PreparedCall]) -> bool:
        """Take all steps, of which these are left to do; one that is interrupted begins anew."""
        step = 0
        try:
            for step, call in calls:
                if not call():
                    return self._fail_at(range(self.steps.count), step)
        except Exception as error:
            self.machine.explain(int(self.steps.position[step]), int(self.steps.row[step]), error)
            return self._fail_at(range(self.steps.count), step)
        self.order.extend(range(self.steps.count))
        return True

    def _fail_at(self, chunk: Sequence[int], number: int) -> bool:
        """The steps of a chunk before one that failed have been taken."""
        self.failed = chunk[number]
        self.order.extend(chunk[:number])
        return False

    def _take_singly(self, most: int) -> bool:
        for _ in range(most):
            step = self.next()
            if step is None:
                self.explain_illegal_order()
                return self.failed is None
            if self.take(step) is None:
                return False
        return True

    def explain_illegal_order(self) -> None:
        """Report the step of a recorded order that is not ready."""
        schedule = self._schedule
        if self.is_finished or self.failed is not None or not isinstance(schedule, RecordedOrder):
            return
        step = schedule.steps[len(self.order)]
        statement = self.steps.statement(step)
        has_run = step in set(self.order)
        why = "has run already" if has_run else "must wait for tasks that have not run"
        message = (
            f"step {len(self.order) + 1} of the order is `{self.steps.name(step)}`, which {why}"
        )
        span = self.steps.plan.program.span(statement.node)
        self.machine.findings.diagnostics.append(RUN08.at(span, message))
        self.failed = step

    def step_back(self) -> int | None:
        """Take the latest step back, with what the host wrote since; None: nothing remembered."""
        # What the host wrote before the first step that is remembered is not taken back.
        while self._history is not None and self._history.has_step:
            change = self._history.pop()
            for part in reversed(change.before):
                part.restore()
            self.machine.findings.forget_after(change.findings)
            if change.step is None:
                self.host_writes.pop()
                continue
            self.failed = None
            self.order.pop()
            self.frontier.undo(change.step, change.completed)
            if self._races is not None:
                self._races.note_undo(len(self.order))
            return change.step
        # A step that failed has changed nothing: it may be tried again.
        self.failed = None
        return None

    def note_host_write(self, storage: Storage, low: int, high: int) -> None:
        """Remember bytes that the host is about to write."""
        if self._repeats is not None:
            self._repeats.note_host_write(storage.buffer, is_running=bool(self.order))
        self.host_writes.append((len(self.order), storage, low, high))
        if self._history is not None:
            findings = len(self.machine.findings.diagnostics)
            self._history.add(Change(None, save_bytes([(storage, low, high)]), [], findings))


def _known_order(schedule: Schedule, count: int) -> list[int] | None:
    """The whole order, where it does not depend on what is ready: it can be run in one go."""
    if isinstance(schedule, ProgramOrder):
        return list(range(count))
    return list(schedule.steps) if isinstance(schedule, TimedOrder) else None

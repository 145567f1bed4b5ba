"""Where a run pauses: breakpoints before a step, watchpoints after one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

from nacre.base.excerpt import backquote
from nacre.nem.model.program import Access, Task
from nacre.nem.run.memory.regions import UnknownNameError
from nacre.nem.run.memory.task_footprints import TaskFootprints, TouchedRun
from nacre.nem.run.sessions.naming import split_instance
from nacre.nem.run.sessions.references import Selection
from nacre.nem.run.sessions.steps import Steps

Condition = Callable[[Any], bool]  # given the session

_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """A pause before the steps of a task or line, or when a loop admits an iteration."""

    task: str | None = None
    line: int | None = None
    loop_iter: int | None = None
    condition: Condition | None = None
    number: int = field(default_factory=lambda: next(_numbers))

    def matches(self, steps: Steps, step: int) -> bool:
        """Whether it lies before a step; the condition is not asked."""
        if self.line is not None:
            location = steps.plan.program.span(steps.statement(step).node).location
            return location.line <= self.line <= (location.end_line or location.line)
        if self.task is not None:
            parts = split_instance(self.task)
            wanted = parts[1] if parts is not None else None
            named = steps.statement(step) in steps.statements_named(self.task)
            return named and (wanted is None or wanted == steps.iteration(step))
        return self.loop_iter is None and self.condition is not None

    def __str__(self) -> str:
        what = [
            f"{name} {value}"
            for name, value in (
                ("task", self.task),
                ("line", self.line),
                ("iteration", self.loop_iter),
            )
            if value is not None
        ]
        text = ", ".join(what) or "any step"
        return f"{text}, on a condition" if self.condition is not None else text


@dataclass(frozen=True, slots=True)
class Watchpoint:
    """A pause after a step that touches a region's bytes, or that satisfies a token."""

    region: Selection | None = None
    token: str | None = None
    access: Literal["read", "write", "any"] = "write"
    condition: Condition | None = None  # asked after the step
    number: int = field(default_factory=lambda: next(_numbers))

    def matches(self, steps: Steps, step: int, footprints: TaskFootprints) -> bool:
        """Whether a step that has been taken sets it off; the condition is not asked."""
        statement = steps.statement(step)
        if not isinstance(statement, Task):
            return False
        if self.token is not None:
            parts = split_instance(self.token)
            wanted = parts[1] if parts is not None else None
            named = statement in steps.statements_named(self.token)
            return named and (wanted is None or wanted == steps.iteration(step))
        region = self.region
        kind = None if self.access == "any" else self.access
        return region is not None and any(
            buffer == region.located.buffer.index and region.overlaps(low, high)
            for buffer, _, low, high in _touched_runs(
                footprints, statement, int(steps.row[step]), kind
            )
        )

    def __str__(self) -> str:
        text = f"token {self.token}" if self.token else f"region {self.region and self.region.name}"
        return f"{text}, on a condition" if self.condition is not None else text


def _touched_runs(
    footprints: TaskFootprints, task: Task, row: int, kind: Access | None
) -> Iterator[TouchedRun]:
    """The runs of bytes that an instance reads, really fills, or both."""
    if kind != "write":
        yield from footprints.touched_runs(task, row, "read")
    if kind != "read":
        yield from footprints.written_runs(task, row)


def require_task(steps: Steps, name: str) -> None:
    """A name that a breakpoint or watchpoint can stand on."""
    parts = split_instance(name)
    if not steps.statements_named(name):
        raise UnknownNameError(f"no task {backquote(str(name))}; there are {_some_names(steps)}")
    if parts is not None and parts[1] is not None and steps.find_instance(name) is None:
        raise UnknownNameError(f"`{parts[0]}` has no iteration {list(parts[1])}")


def line_with_step(steps: Steps, line: int) -> int:
    """The line of a breakpoint: that one or, where no task or wait stands there, the next."""
    if not isinstance(line, int):
        raise UnknownNameError(f"the line is `{line}`, expected a number")
    span = steps.plan.program.span
    locations = [span(s.node).location for s in steps.statements.values()]
    if any(p.line <= line <= (p.end_line or p.line) for p in locations):
        return line
    later = sorted(p.line for p in locations if p.line > line)
    if not later:
        raise UnknownNameError(f"no task or wait stands on line {line} or after it")
    return later[0]


def _some_names(steps: Steps) -> str:
    names = list(steps.by_name)
    listed = ", ".join(f"`{name}`" for name in names[:8])
    return f"{listed} and {len(names) - 8} more" if len(names) > 8 else listed

"""A task with what it touches, before it is known what it waits for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from nacre.compile.program import Compute, Copy, Let, Statement
from nacre.compile.schedule.order import Touch


@dataclass(frozen=True)
class Task:
    """A task before it is known what it waits for, with the names that it declares."""

    statement: Copy | Compute
    touches: tuple[Touch, ...]
    lets: tuple[Let, ...] = ()

    def statements(self, deps: tuple[str, ...]) -> Iterator[Statement]:
        """The names, then the task."""
        yield from self.lets
        yield replace(self.statement, deps=deps)


def engine_suffix(engine: int) -> str:
    """What names of an engine end in; those of the first in nothing."""
    return f"e{engine}" if engine else ""

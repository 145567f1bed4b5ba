"""Bytes that nobody wrote, and what is known about how they came to be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nacre.base.diagnostics import Related
from nacre.nem.model.program import Buffer, Task
from nacre.nem.run.memory.memory import Storage


@dataclass(frozen=True, slots=True)
class Gap:
    """Bytes of a buffer that nobody wrote."""

    storage: Storage
    low: int
    high: int

    @property
    def buffer(self) -> Buffer:
        """The buffer."""
        return self.storage.buffer

    def __str__(self) -> str:
        return f"bytes {self.low}..{self.high - 1} of `{self.buffer.name}`"


@dataclass(frozen=True, slots=True)
class Origin:
    """How a gap came about, in words and as places."""

    sentence: str = ""  # goes on after what was read: the copies that carried it along
    related: tuple[Related, ...] = ()
    remedy: str = "fill the buffer"


# Of what a row of a task reads, or the host.
FindOrigin = Callable[[Gap, Task | None, int], Origin]


def unknown_origin(gap: Gap, reader: Task | None, row: int) -> Origin:
    """Where nobody knows the steps taken."""
    return Origin()

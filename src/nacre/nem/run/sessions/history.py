"""The undo log: what each step changed, so that a session can go back."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from nacre.kernels.interface.layouts import Bytes, Mask
from nacre.nem.run.machine.actions import ByteRange
from nacre.nem.run.memory.memory import Storage


@dataclass(frozen=True, slots=True)
class SavedBytes:
    """Bytes of a buffer before a step, and which of them had been written."""

    storage: Storage
    low: int
    data: Bytes
    written: Mask
    missing: int

    @property
    def size(self) -> int:
        """Bytes that keeping it takes."""
        return self.data.nbytes + self.written.nbytes

    def restore(self) -> None:
        """Put everything back."""
        high = self.low + self.data.size
        self.storage.data[self.low : high] = self.data
        self.storage.written[self.low : high] = self.written
        self.storage.missing = self.missing


def save_bytes(ranges: list[ByteRange]) -> list[SavedBytes]:
    """The present state of some bytes."""
    return [
        SavedBytes(s, low, s.data[low:high].copy(), s.written[low:high].copy(), s.missing)
        for s, low, high in ranges
    ]


@dataclass(frozen=True, slots=True)
class Change:
    """One step or one write by the host, and what is needed to take it back."""

    step: int | None  # None: a write by the host
    before: list[SavedBytes]
    completed: list[int]  # nodes of the graph
    findings: int  # how many there were before

    @property
    def size(self) -> int:
        """Bytes that keeping it takes."""
        return sum(part.size for part in self.before)


class History:
    """The latest changes, as many as a budget of bytes holds; the oldest are forgotten first."""

    def __init__(self, budget_bytes: int) -> None:
        self._budget = budget_bytes
        self._changes: deque[Change] = deque()
        self._size = 0

    @property
    def has_step(self) -> bool:
        """Whether a step is among the changes."""
        return any(change.step is not None for change in self._changes)

    def add(self, change: Change) -> None:
        """Remember a change."""
        self._changes.append(change)
        self._size += change.size
        while self._size > self._budget and len(self._changes) > 1:
            self._size -= self._changes.popleft().size

    def clear(self) -> None:
        """Forget all changes."""
        self._changes.clear()
        self._size = 0

    def pop(self) -> Change:
        """The latest change, no longer remembered."""
        change = self._changes.pop()
        self._size -= change.size
        return change

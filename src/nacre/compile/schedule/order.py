"""What a task must wait for: everything before it that touches the same bytes, and no more.

The record of a task is dropped when it is settled, by a wait or at the end of a loop, or when a
later task that comes after it overwrites all its bytes: who conflicts with it conflicts with that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nacre.compile.partition.layers import element_bytes
from nacre.compile.program import Region


@dataclass(frozen=True)
class Touch:
    """Bytes of a buffer that a task reads or writes; evenly spaced runs where it has gaps."""

    buffer: str
    start: int
    end: int
    writes: bool
    pitch: int = 0  # from one run to the next; 0: no gaps
    run: int = 0

    def overlaps(self, other: Touch) -> bool:
        """Whether both touch a byte; gaps count where both are spaced alike."""
        if self.buffer != other.buffer or self.start >= other.end or other.start >= self.end:
            return False
        if not self.pitch or self.pitch != other.pitch:
            return True
        shift = (other.start - self.start) % self.pitch
        return shift < self.run or shift + other.run > self.pitch


def touch_of(region: Region, writes: bool) -> Touch:
    """What a region touches, at the constant part of its offset."""
    start = region.offset.constant
    pitch = run = 0
    if region.strides:
        size_of = element_bytes(region.elem)
        gaps = [(s, n) for n, s in zip(region.shape, region.strides, strict=True) if n > 1 and s]
        length = 1
        steps: list[int] = []
        for stride, size in reversed(gaps):
            if stride <= length and not steps:
                length = max(length, stride * (size - 1) + length)
            else:
                steps.append(stride)
        if steps and all(stride % steps[0] == 0 for stride in steps) and length <= steps[0]:
            pitch, run = steps[0] * size_of, length * size_of
    return Touch(region.buffer, start, start + region.size, writes, pitch, run)


class Order:
    """The tasks so far, and who comes after whom."""

    def __init__(self) -> None:
        self._open: dict[str, list[tuple[int, Touch]]] = {}  # by buffer
        self._tokens: list[str] = []
        self._numbers: dict[str, int] = {}
        self._after: list[int] = []  # by task: the set of those it comes after, as bits
        self._settled = 0  # bits of tasks that everything further down comes after

    def conflicts(self, touches: Iterable[Touch]) -> tuple[str, ...]:
        """The tasks that have to be done before these bytes are touched; the latest are enough."""
        found = 0
        for wanted in touches:
            for number, other in self._open.get(wanted.buffer, ()):
                if (wanted.writes or other.writes) and wanted.overlaps(other):
                    found |= 1 << number
        return self._names(self._latest(found))

    def _latest(self, tasks: int) -> int:
        covered = 0
        rest = tasks
        while rest:
            number = rest.bit_length() - 1
            rest ^= 1 << number
            covered |= self._after[number]
        return tasks & ~covered

    def _names(self, tasks: int) -> tuple[str, ...]:
        names = []
        while tasks:
            low = tasks & -tasks
            names.append(self._tokens[low.bit_length() - 1])
            tasks ^= low
        return tuple(names)

    def add(self, token: str, deps: Iterable[str], touches: Iterable[Touch]) -> None:
        """One more task."""
        number = len(self._tokens)
        after = self._settled
        for dep in deps:
            at = self._numbers[dep]
            after |= self._after[at] | 1 << at
        self._tokens.append(token)
        self._numbers[token] = number
        self._after.append(after)
        for touch in touches:
            kept = self._open.setdefault(touch.buffer, [])
            if touch.writes and not touch.pitch:
                kept[:] = [
                    (n, t)
                    for n, t in kept
                    if not (touch.start <= t.start and t.end <= touch.end and after >> n & 1)
                ]
            kept.append((number, touch))

    def knows(self, token: str) -> bool:
        """Whether a task is one of these."""
        return token in self._numbers

    def settle(self, tokens: Iterable[str]) -> None:
        """Everything further down comes after these."""
        for token in tokens:
            number = self._numbers[token]
            self._settled |= self._after[number] | 1 << number
        for kept in self._open.values():
            kept[:] = [(n, t) for n, t in kept if not self._settled >> n & 1]

    def latest_tasks(self, tokens: Iterable[str]) -> tuple[str, ...]:
        """Those of some tasks that nothing further down is known to come after; the latest."""
        found = 0
        for token in tokens:
            number = self._numbers[token]
            found |= 0 if self._settled >> number & 1 else 1 << number
        return self._names(self._latest(found))

    @property
    def open_tokens(self) -> tuple[str, ...]:
        """Tasks that nothing further down is known to come after; the latest are enough."""
        found = 0
        for kept in self._open.values():
            for number, _ in kept:
                found |= 1 << number
        return self._names(self._latest(found))

"""What a task must wait for: everything before it that touches the same bytes, and no more.

The record of a task is dropped when it is settled, by a wait or at the end of a loop, or when a
later task that comes after it overwrites all its bytes: who conflicts with it conflicts with that.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

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


@dataclass
class _SizeClass:
    """Touches of about one length in the order of their starts."""

    starts: list[int] = field(default_factory=list)
    held: list[tuple[int, Touch]] = field(default_factory=list)  # by task

    def keep(self, is_kept: Callable[[int, Touch], bool], first: int, stop: int) -> None:
        """Drop those of a part that are not kept."""
        kept = [at for at in range(first, stop) if is_kept(*self.held[at])]
        if len(kept) < stop - first:
            self.starts[first:stop] = [self.starts[at] for at in kept]
            self.held[first:stop] = [self.held[at] for at in kept]


class _OpenTouches:
    """What tasks touch of one buffer, found by where it lies: a layer may have thousands."""

    def __init__(self) -> None:
        self._classes: dict[int, _SizeClass] = {}  # by the bits of a length

    def __iter__(self) -> Iterator[tuple[int, Touch]]:
        return (entry for some in self._classes.values() for entry in some.held)

    def overlapping(self, wanted: Touch) -> Iterator[tuple[int, Touch]]:
        """All that may overlap with it."""
        for bits, some in self._classes.items():
            first = bisect_right(some.starts, wanted.start - (1 << bits))
            yield from some.held[first : bisect_left(some.starts, wanted.end, first)]

    def add(self, number: int, touch: Touch) -> None:
        """One more."""
        bits = max(0, touch.end - touch.start).bit_length()
        some = self._classes.setdefault(bits, _SizeClass())
        at = bisect_right(some.starts, touch.start)
        some.starts.insert(at, touch.start)
        some.held.insert(at, (number, touch))

    def keep(self, is_kept: Callable[[int, Touch], bool]) -> None:
        """Drop those that are not kept."""
        for some in self._classes.values():
            some.keep(is_kept, 0, len(some.held))

    def drop_inside(self, whole: Touch, after: int) -> None:
        """Those within others' bytes, of tasks that these come after."""
        for some in self._classes.values():
            first = bisect_left(some.starts, whole.start)
            stop = bisect_left(some.starts, whole.end, first)
            some.keep(lambda n, t: t.end > whole.end or not after >> n & 1, first, stop)


class Order:
    """The tasks so far, and who comes after whom."""

    def __init__(self) -> None:
        self._open: dict[str, _OpenTouches] = {}  # by buffer
        self._tokens: list[str] = []
        self._numbers: dict[str, int] = {}
        self._after: list[int] = []  # by task: the set of those it comes after, as bits
        self._settled = 0  # bits of tasks that everything further down comes after

    def conflicts(self, touches: Iterable[Touch]) -> tuple[str, ...]:
        """The tasks that have to be done before these bytes are touched; the latest are enough."""
        found = 0
        for wanted in touches:
            held = self._open.get(wanted.buffer)
            for number, other in () if held is None else held.overlapping(wanted):
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
            held = self._open.setdefault(touch.buffer, _OpenTouches())
            if touch.writes and not touch.pitch:
                held.drop_inside(touch, after)
            held.add(number, touch)

    def knows(self, token: str) -> bool:
        """Whether a task is one of these."""
        return token in self._numbers

    def settle(self, tokens: Iterable[str]) -> None:
        """Everything further down comes after these."""
        for token in tokens:
            number = self._numbers[token]
            self._settled |= self._after[number] | 1 << number
        for held in self._open.values():
            held.keep(lambda number, _: not self._settled >> number & 1)

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
        for held in self._open.values():
            for number, _ in held:
                found |= 1 << number
        return self._names(self._latest(found))

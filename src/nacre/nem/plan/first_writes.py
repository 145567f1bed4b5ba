"""Reads of bytes that nothing wrote before, in program order.

Dependences lead back in the text only, so program order is a schedule that every program allows:
what it reads unwritten can be read unwritten. What a task writes counts for later tasks, not for
its own operands: an operation in place reads first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import is_

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from nacre.base.term_columns import Column, distinct
from nacre.nem.model.program import Loop, Task
from nacre.nem.plan.coverage import AccessCoverage, BufferUse
from nacre.nem.plan.footprints import NOTHING, Pattern, Runs, dense_pattern
from nacre.nem.plan.plan import Plan
from nacre.nem.plan.sequence import task_numbers

_MOST_ROWS = 1 << 12  # of a body whose offsets are compared
_FIRST_ROW = np.zeros(1, np.int64)
_NEVER = np.iinfo(np.int64).max

# Strided tiles at very many offsets: beyond this the question is too dear to be asked.
_MOST_RUNS = 1 << 22


_Place = int | tuple[int, bytes]  # an offset; where it varies a body, and the offset in every row


class UnwrittenRead(Struct, frozen=True):
    """The first instance of an access that reads bytes which nothing wrote before."""

    read: AccessCoverage
    row: int
    low: int
    high: int


def unwritten_reads(plan: Plan, use: BufferUse) -> Iterator[UnwrittenRead]:
    """For every access that reads bytes of a buffer which nothing wrote before, its first such."""
    open_reads = _reads_without_a_write_beside(use)
    if not open_reads:
        return
    numbers = task_numbers(plan)
    writes, reads = _Touches(use.writes, numbers), _Touches(open_reads, numbers)
    if writes.size + reads.size > _MOST_RUNS:
        return
    written = _WriteTimes(*writes.columns[:2])
    for read, rows in _late_reads(written, open_reads, reads):
        row = int(rows.min())
        time = int(numbers[read.access.position][row])
        low, high = written.first_gap(read.runs_in(row), time)
        yield UnwrittenRead(read, row, low, high)


def _reads_without_a_write_beside(use: BufferUse) -> list[AccessCoverage]:
    """Reads of bytes that no task further up writes as a whole, in the same body or around it.

    Most reads are of what was just copied or computed; only the others need a look at all writes.
    """
    writes: dict[_Place, list[tuple[Task, int]]] = {}  # place -> who writes how much
    for write in use.writes:
        place, footprint = _place(write), write.access.footprint
        if place is not None and footprint.is_dense:
            size = footprint.patterns[0].span
            writes.setdefault(place, []).append((write.access.task, size))
    return [read for read in use.reads if not _is_written_beside(read, writes)]


def _is_written_beside(
    read: AccessCoverage, writes: Mapping[_Place, Sequence[tuple[Task, int]]]
) -> bool:
    place, task = _place(read), read.access.task
    if place is None:
        return False
    needed = read.access.footprint.patterns[0].span
    return any(
        size >= needed and writer.position < task.position and _is_around(writer.loops, task.loops)
        for writer, size in writes.get(place, ())
    )


def _is_around(outer: tuple[Loop, ...], inner: tuple[Loop, ...]) -> bool:
    """Whether a body is that inside some loops, or one around it."""
    return len(outer) <= len(inner) and all(map(is_, outer, inner))


def _place(covered: AccessCoverage) -> _Place | None:
    """The offset of an access, with its body where it varies; None where it has more patterns."""
    footprint, grid = covered.access.footprint, covered.access.grid
    if len(footprint.patterns) != 1:
        return None
    low = footprint.low
    if isinstance(low, int):
        return low
    return None if grid.rows > _MOST_ROWS else (id(grid), low.tobytes())


def _late_reads(
    written: _WriteTimes, reads: Sequence[AccessCoverage], touches: _Touches
) -> Iterator[tuple[AccessCoverage, Column]]:
    """Accesses that read before something is written, and the rows in which they do.

    All are asked about at once: what a question costs hardly depends on how many runs it has.
    """
    runs, times, rows = touches.columns
    late = written.is_late(runs, times)
    ends = np.cumsum(touches.counts)
    for number in distinct(np.searchsorted(ends, np.flatnonzero(late), side="right")).tolist():
        here = slice(int(ends[number]) - touches.counts[number], int(ends[number]))
        yield reads[number], rows[here][late[here]]


class _Touches:
    """The runs of bytes of many accesses, when and in which row each is first touched."""

    def __init__(self, accesses: Sequence[AccessCoverage], numbers: Mapping[int, Column]) -> None:
        self._numbers = numbers
        self._accesses = accesses
        # Most accesses touch one run at one place; only the others have offsets to tell apart.
        self._several = {
            index: _pattern_offsets(covered)
            for index, covered in enumerate(accesses)
            if not _is_one_run(covered)
        }
        self.counts = [
            sum(part.runs for part in self._several.get(index, (_ONE_RUN,)))
            for index in range(len(accesses))
        ]
        self.size = sum(self.counts)

    @cached_property
    def columns(self) -> tuple[Runs, Column, Column]:
        """Runs, the number of the first instance that touches each, and its row."""
        runs = np.zeros((self.size, 2), np.int64)
        times, rows = np.zeros(self.size, np.int64), np.zeros(self.size, np.int64)
        begins = np.cumsum([0, *self.counts]).tolist()
        ones = [n for n in range(len(self._accesses)) if n not in self._several]
        if ones:
            at = [begins[number] for number in ones]
            runs[at] = [self._accesses[number].access.footprint.extent for number in ones]
            times[at] = [self._first_number(number) for number in ones]
        for number, offsets in self._several.items():
            here = slice(begins[number], begins[number + 1])
            position = self._accesses[number].access.position
            runs[here], times[here], rows[here] = _first_times(offsets, self._numbers[position])
        return runs, times, rows

    def _first_number(self, number: int) -> int:
        return int(self._numbers[self._accesses[number].access.position][0])


def _is_one_run(covered: AccessCoverage) -> bool:
    footprint = covered.access.footprint
    is_fixed = isinstance(footprint.low, int) and isinstance(footprint.pattern_index, int)
    return is_fixed and footprint.is_dense


class _PatternOffsets(Struct, frozen=True):
    """The distinct offsets of a pattern, and the first row that has each."""

    pattern: Pattern
    lows: Column
    rows: Column

    @property
    def runs(self) -> int:
        """How many runs of bytes these are."""
        return self.lows.size * len(self.pattern.runs)


_ONE_RUN = _PatternOffsets(dense_pattern(1), _FIRST_ROW, _FIRST_ROW)


def _pattern_offsets(covered: AccessCoverage) -> list[_PatternOffsets]:
    footprint, index = covered.access.footprint, covered.access.footprint.pattern_index
    if isinstance(index, int) and isinstance(footprint.low, int):
        return [_PatternOffsets(footprint.patterns[index], np.array([footprint.low]), _FIRST_ROW)]
    if isinstance(index, int):
        lows, first = np.unique(np.asarray(footprint.low), return_index=True)
        return [_PatternOffsets(footprint.patterns[index], lows, first)]
    low = np.broadcast_to(np.asarray(footprint.low), index.shape)
    offsets = []
    for number, pattern in enumerate(footprint.patterns):
        rows = np.flatnonzero(index == number)
        lows, first = np.unique(low[rows], return_index=True)
        offsets.append(_PatternOffsets(pattern, lows, rows[first]))
    return offsets


def _first_times(
    offsets: Iterable[_PatternOffsets], numbers: Column
) -> tuple[Runs, Column, Column]:
    """Runs of bytes, the number of the first instance that touches each, and its row."""
    parts = list(offsets)
    if len(parts) == 1 and parts[0].lows.size == 1:
        moved = parts[0].lows[0] + parts[0].pattern.runs
        return (
            moved,
            np.full(len(moved), numbers[parts[0].rows[0]]),
            np.repeat(parts[0].rows, len(moved)),
        )
    runs, rows = [NOTHING], [np.zeros(0, np.int64)]
    for part in parts:
        runs.append((part.lows[:, None, None] + part.pattern.runs[None]).reshape(-1, 2))
        rows.append(np.repeat(part.rows, len(part.pattern.runs)))
    of_row = np.concatenate(rows)
    return np.concatenate(runs), numbers[of_row], of_row


class _WriteTimes:
    """When each byte of a buffer is first written."""

    def __init__(self, runs: Runs, times: Column) -> None:
        # Between two neighbouring marks all bytes are first written at one time.
        self._marks = np.unique(np.concatenate([np.zeros(1, np.int64), runs.reshape(-1)]))
        self._first = _earliest(*self._pieces_of(runs), times, self._marks.size)

    def _pieces_of(self, runs: Runs) -> tuple[Column, Column]:
        begin = np.searchsorted(self._marks, runs[:, 0], side="right") - 1
        return begin, np.searchsorted(self._marks, runs[:, 1], side="left")

    def is_late(self, runs: Runs, times: Column) -> npt.NDArray[np.bool_]:
        """Which runs hold a byte that is not written before their time."""
        return _latest(*self._pieces_of(runs), self._first) >= times

    def first_gap(self, runs: Runs, time: int) -> tuple[int, int]:
        """The first bytes of some runs that are not written before a time."""
        for low, high in runs.tolist():
            (begin,), (end,) = self._pieces_of(np.array([[low, high]], np.int64))
            open_ = np.flatnonzero(self._first[begin:end] >= time)
            if open_.size:
                steps = np.flatnonzero(np.diff(open_) > 1)
                last = int(open_[steps[0]] if steps.size else open_[-1]) + begin + 1
                start = max(low, int(self._marks[begin + open_[0]]))
                return start, min(high, int(self._marks[last])) if last < end else high
        return int(runs[0, 0]), int(runs[0, 1])


def _levels(begin: Column, end: Column) -> Column:
    """The exponent of the largest power of two within each range; ranges are not empty."""
    return np.frexp((end - begin).astype(np.float64))[1].astype(np.int64) - 1


def _earliest(begin: Column, end: Column, times: Column, size: int) -> Column:
    """For every place the least time of all ranges that cover it.

    A range is two that overlap, of a power of two each; from large to small, each is handed on to
    its halves.
    """
    level = _levels(begin, end)
    least = np.full(size, _NEVER, np.int64)
    for power in range(int(level.max(initial=0)), -1, -1):
        half = 1 << power
        if power < int(level.max(initial=0)):
            shifted = least.copy()
            shifted[half:] = np.minimum(least[half:], least[:-half])
            least = shifted
        here = level == power
        np.minimum.at(least, begin[here], times[here])
        np.minimum.at(least, end[here] - half, times[here])
    return least


def _latest(begin: Column, end: Column, first: Column) -> Column:
    """The greatest of the first times within each range."""
    level, latest = _levels(begin, end), np.empty(begin.size, np.int64)
    most = first
    for power in range(int(level.max(initial=0)) + 1):
        here = level == power
        latest[here] = np.maximum(most[begin[here]], most[end[here] - (1 << power)])
        half = 1 << power
        if half < most.size:
            most = np.maximum(most[:-half], most[half:])
    return latest

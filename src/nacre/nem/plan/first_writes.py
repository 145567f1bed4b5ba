"""Reads of bytes that nothing wrote before, in program order.

Dependences lead back in the text only, so program order is a schedule that every program allows:
what it reads unwritten can be read unwritten. What a task writes counts for later tasks, not for
its own operands: an operation in place reads first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from nacre.base.term_columns import Column, distinct
from nacre.nem.plan.coverage import AccessCoverage, BufferUse
from nacre.nem.plan.footprints import NOTHING, Pattern, Runs
from nacre.nem.plan.plan import Plan
from nacre.nem.plan.sequence import task_numbers

_MOST_ROWS = 1 << 12  # of a body whose offsets are compared
_FIRST_ROW = np.zeros(1, np.int64)
_NEVER = np.iinfo(np.int64).max

# Strided tiles at very many offsets: beyond this the question is too dear to be asked.
_MOST_RUNS = 1 << 22


_Place = tuple[int, int | bytes]  # a body, and an offset in it: one number, or in every row


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
    writes = [_pattern_offsets(write) for write in use.writes]
    reads = [_pattern_offsets(read) for read in open_reads]
    if sum(part.runs for offsets in (*writes, *reads) for part in offsets) > _MOST_RUNS:
        return
    numbers = task_numbers(plan)
    pairs = zip(use.writes, writes, strict=True)
    written = _WriteTimes(
        [_first_times(offsets, numbers[w.access.position])[:2] for w, offsets in pairs]
    )
    for read, rows in _late_reads(written, open_reads, reads, numbers):
        row = int(rows.min())
        time = int(numbers[read.access.position][row])
        low, high = written.first_gap(read.runs_in(row), time)
        yield UnwrittenRead(read, row, low, high)


def _reads_without_a_write_beside(use: BufferUse) -> list[AccessCoverage]:
    """Reads of bytes that no task further up in the same body writes as a whole in every row.

    Most reads are of what was just copied or computed; only the others need a look at all writes.
    """
    writes: dict[_Place, list[tuple[int, int]]] = {}  # place -> position, size
    for write in use.writes:
        place, footprint = _place(write), write.access.footprint
        if place is not None and footprint.is_dense:
            size = footprint.patterns[0].span
            writes.setdefault(place, []).append((write.access.position, size))
    return [read for read in use.reads if not _is_written_beside(read, writes)]


def _is_written_beside(
    read: AccessCoverage, writes: Mapping[_Place, Sequence[tuple[int, int]]]
) -> bool:
    place, position = _place(read), read.access.position
    if place is None:
        return False
    needed = read.access.footprint.patterns[0].span
    return any(at < position and size >= needed for at, size in writes.get(place, ()))


def _place(covered: AccessCoverage) -> _Place | None:
    """The body of an access and its offset in every row; None where it has several patterns."""
    footprint, grid = covered.access.footprint, covered.access.grid
    if len(footprint.patterns) != 1 or grid.rows > _MOST_ROWS:
        return None
    low = footprint.low
    return id(grid), low if isinstance(low, int) else low.tobytes()


def _late_reads(
    written: _WriteTimes,
    reads: Sequence[AccessCoverage],
    offsets: Sequence[list[_PatternOffsets]],
    numbers: Mapping[int, Column],
) -> Iterator[tuple[AccessCoverage, Column]]:
    """Accesses that read before something is written, and the rows in which they do.

    All are asked about at once: what a question costs hardly depends on how many runs it has.
    """
    pairs = zip(reads, offsets, strict=True)
    parts = [_first_times(own, numbers[read.access.position]) for read, own in pairs]
    if not parts:
        return
    runs, times, rows = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    late = written.is_late(runs, times)
    ends = np.cumsum([len(part[0]) for part in parts])
    for number in distinct(np.searchsorted(ends, np.flatnonzero(late), side="right")).tolist():
        here = slice(int(ends[number]) - len(parts[number][0]), int(ends[number]))
        yield reads[number], rows[here][late[here]]


class _PatternOffsets(Struct, frozen=True):
    """The distinct offsets of a pattern, and the first row that has each."""

    pattern: Pattern
    lows: Column
    rows: Column

    @property
    def runs(self) -> int:
        """How many runs of bytes these are."""
        return self.lows.size * len(self.pattern.runs)


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

    def __init__(self, writes: Sequence[tuple[Runs, Column]]) -> None:
        runs = np.concatenate([NOTHING, *(write[0] for write in writes)])
        times = np.concatenate([np.zeros(0, np.int64), *(write[1] for write in writes)])
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

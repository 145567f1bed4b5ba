"""Long bodies without loops: a sweep over bytes instead of all pairs.

Per byte only neighbours matter: a write against the reads and the write before it, a read against
the write before it. Where those are ordered, everything is, for order carries over.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from nacre.nem.plan.order import Order
from nacre.nem.plan.plan import Access


@dataclass(slots=True)
class _Segment:
    """Bytes with the same history: the last write, and the reads since."""

    write: Access | None = None
    reads: list[Access] = field(default_factory=list)

    def copy(self) -> _Segment:
        return _Segment(self.write, list(self.reads))


class _History:
    """What happened to each byte of a buffer, as segments between sorted cuts."""

    def __init__(self, end: int) -> None:
        self._cuts = [0, end]
        self._segments = [_Segment()]

    def _cut(self, at: int) -> int:
        place = bisect_left(self._cuts, at)
        if self._cuts[place] != at:
            self._cuts.insert(place, at)
            self._segments.insert(place, self._segments[place - 1].copy())
        return place

    def covering(self, low: int, high: int) -> slice:
        """The segments of [low, high), cut to fit."""
        first = self._cut(low)
        return slice(first, self._cut(high))

    def read(self, access: Access, low: int, high: int) -> set[Access]:
        """Note a read; the accesses that it must come after."""
        before: set[Access] = set()
        for segment in self._segments[self.covering(low, high)]:
            if segment.write is not None:
                before.add(segment.write)
            segment.reads.append(access)
        return before

    def write(self, access: Access, low: int, high: int) -> set[Access]:
        """Note a write; the accesses that it must come after."""
        before: set[Access] = set()
        where = self.covering(low, high)
        for segment in self._segments[where]:
            if segment.write is not None:
                before.add(segment.write)
            before.update(segment.reads)
        # What was written at once has one history again: the list of segments stays short.
        self._segments[where] = [_Segment(access)]
        del self._cuts[bisect_right(self._cuts, low) : bisect_left(self._cuts, high)]
        return before


def unordered_in_sequence(
    accesses: Sequence[Access], order: Order
) -> Iterator[tuple[Access, Access, int]]:
    """Unordered pairs among the tasks of one body, in each iteration; each pair once."""
    seen: set[tuple[int, int]] = set()
    rows = accesses[0].grid.rows
    end = max(access.footprint.end for access in accesses)
    for row in range(rows):
        history = _History(end)
        for access in accesses:
            for a in _before(history, access, row):
                key = (id(a), id(access))
                if key in seen or a.position == access.position:
                    continue
                if not order.always_before(a.position, access.position):
                    seen.add(key)
                    yield a, access, row


def _before(history: _History, access: Access, row: int) -> list[Access]:
    """What an access must come after, in the order of the text."""
    low = access.footprint.low_at(row)
    note = history.write if access.is_write else history.read
    pattern = access.footprint.pattern(row)
    if pattern.is_dense:
        found = note(access, low, low + pattern.span)
    else:
        found = set()
        for start, end in pattern.runs.tolist():
            found |= note(access, low + start, low + end)
    return sorted(found, key=lambda a: a.position) if len(found) > 1 else list(found)

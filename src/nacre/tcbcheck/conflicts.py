"""Accesses to the same bytes that the tags of an image leave unordered.

Instances are taken in program order. Of every byte the last write is known, and the reads since
then; whoever comes next must be after them. What follows from that needs no look: if each access
is after the one before it that it conflicts with, all are.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct

from nacre.tcb.machine.instances import Instances
from nacre.tcbcheck.accesses import BlockAccess, block_accesses
from nacre.tcbcheck.tag_order import Ordering

_NOBODY = -1


class Conflict(Struct, frozen=True, eq=False):
    """Two instances that touch the same bytes, one of them writing, in an order that is open."""

    first: int
    second: int
    memory: str
    low: int
    high: int
    first_writes: bool
    second_writes: bool
    is_ordered: bool = False  # by tags; the two are told because one stands elsewhere in its plan


_Meeting = tuple[int, int, str, int, int, bool, bool]  # a conflict's fields


class _Segment:
    """Bytes with one history: the last write, and the reads since, the last of each tag."""

    __slots__ = ("readers", "writer")

    def __init__(self, writer: int, readers: dict[int, int]) -> None:
        self.writer = writer
        self.readers = readers


class _MemoryHistory:
    """The segments of a memory, side by side."""

    def __init__(self) -> None:
        self._starts: list[int] = [0]
        self._segments: list[_Segment] = [_Segment(_NOBODY, {})]

    def segment_from(self, at: int) -> int:
        """The index of the segment that begins at a byte, made where there is none."""
        index = bisect_right(self._starts, at) - 1
        if self._starts[index] == at:
            return index
        segment = self._segments[index]
        self._starts.insert(index + 1, at)
        self._segments.insert(index + 1, _Segment(segment.writer, dict(segment.readers)))
        return index + 1

    def segments(self, low: int, high: int) -> Sequence[_Segment]:
        """Those that make up a range."""
        first = self.segment_from(low)
        self.segment_from(high)
        return self._segments[first : bisect_left(self._starts, high)]

    def overwrite(self, low: int, high: int, writer: int) -> None:
        """A range has one history from here on."""
        first, end = self.segment_from(low), self.segment_from(high)
        self._starts[first:end] = [low]
        self._segments[first:end] = [_Segment(writer, {})]


def find_conflicts(
    instances: Instances, order: Ordering, moved: Collection[int] = ()
) -> Iterator[Conflict]:
    """Conflicting accesses that are not ordered by tags, in program order.

    And those that are, where one of the blocks is among the `moved`.
    """
    accesses = [list(block_accesses(found)) for found in instances.blocks]
    histories: dict[str, _MemoryHistory] = {}
    owners, rows = instances.block.tolist(), instances.row.tolist()
    for number, (owner, row) in enumerate(zip(owners, rows, strict=True)):
        for access in accesses[owner]:
            history = histories.setdefault(access.operand.memory, _MemoryHistory())
            for conflict, is_ordered in _conflicts_with_history(
                number, access, row, history, order
            ):
                if not is_ordered or (moved and (owner in moved or owners[conflict[0]] in moved)):
                    yield Conflict(*conflict, is_ordered)
        for access in accesses[owner]:
            _record(number, access, row, histories[access.operand.memory], order)


def _ranges(access: BlockAccess, row: int) -> Iterator[tuple[int, int]]:
    address = int(access.address[row])
    for low, high in access.pattern.runs.tolist():
        yield address + low, address + high


def _conflicts_with_history(
    number: int, access: BlockAccess, row: int, history: _MemoryHistory, order: Ordering
) -> Iterator[tuple[_Meeting, bool]]:
    """Those before an access that it conflicts with, and whether tags have it after them."""
    seen: set[int] = set()
    for low, high in _ranges(access, row):
        for segment in history.segments(low, high):
            before = {segment.writer: True}
            if access.is_write:
                before |= dict.fromkeys(segment.readers.values(), False)
            for first, writes in before.items():
                if first in (_NOBODY, number) or first in seen:
                    continue
                seen.add(first)
                memory = access.operand.memory
                meeting = (first, number, memory, low, high, writes, access.is_write)
                yield meeting, order.before(first, number)


def _record(
    number: int, access: BlockAccess, row: int, history: _MemoryHistory, order: Ordering
) -> None:
    for low, high in _ranges(access, row):
        if access.is_write:
            history.overwrite(low, high, number)
        else:
            # Of one tag the last reader comes after the others; without a tag it is after none.
            tag, _ = order.signalled[number]
            for segment in history.segments(low, high):
                segment.readers[tag] = number

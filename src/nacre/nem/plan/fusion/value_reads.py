"""Who reads what each task wrote, followed through memory in program order.

A program without races gives every read the same value under every schedule, and program order is
one of them: so it is enough to follow that. Bytes between all ends of accesses behave alike; each
such piece of a buffer remembers who wrote it last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from msgspec import Struct

from nacre.base.term_columns import Column, distinct
from nacre.nem.plan.coverage import buffer_uses
from nacre.nem.plan.flat import covered_pieces
from nacre.nem.plan.plan import Access, Plan
from nacre.nem.plan.sequence import task_numbers

# Strided tiles at very many offsets: beyond so many runs of bytes a buffer is not followed.
MOST_RUNS = 1 << 22

_NOBODY = -1


class ValueRead(Struct, frozen=True, eq=False):
    """An operand that reads what another wrote, in any iteration."""

    write: Access
    read: Access
    is_one_to_one: bool  # in every iteration both alone: this value, and this reader of it


class ValueReads(Struct, frozen=True, eq=False):
    """All of them, and the buffers that nobody can follow."""

    reads: tuple[ValueRead, ...]
    unknown: frozenset[int]  # buffers, by index


def value_reads(plan: Plan) -> ValueReads:
    """Every pair of a compute task and an operand that reads its output."""
    numbers = task_numbers(plan)
    found: list[ValueRead] = []
    known = set()
    for use in buffer_uses(plan):
        accesses = [covered.access for covered in (*use.reads, *use.writes)]
        if not any(_computes(covered.access) for covered in use.writes):
            known.add(use.buffer.index)
            continue
        bytes_of = _BufferBytes.of(accesses)
        if bytes_of is not None:
            known.add(use.buffer.index)
            found += _reads_of_buffer(accesses, bytes_of, numbers)
    used = {access.buffer_index for access in _accesses(plan)}
    found.sort(key=lambda one: (one.read.position, one.write.position))
    return ValueReads(tuple(found), frozenset(used - known))


def _accesses(plan: Plan) -> Iterator[Access]:
    by_block = chain.from_iterable(blocks.values() for blocks in plan.accesses.values())
    return chain.from_iterable(by_block)


def _computes(access: Access) -> bool:
    return access.task.op not in ("transfer", "store")


@dataclass(frozen=True, eq=False)
class _Placements:
    """The different places at which an access lies, and which of them each row has."""

    lows: Column
    patterns: Column
    index: Column  # by row

    @classmethod
    def of(cls, access: Access) -> _Placements:
        footprint, rows = access.footprint, access.grid.rows
        if isinstance(footprint.low, int) and isinstance(footprint.pattern_index, int):
            place = np.array([footprint.low, footprint.pattern_index])
            return cls(place[:1], place[1:], np.zeros(rows, np.int64))
        low = np.broadcast_to(np.asarray(footprint.low, np.int64), (rows,))
        pattern = np.broadcast_to(np.asarray(footprint.pattern_index, np.int64), (rows,))
        pairs, index = np.unique(np.stack([low, pattern], 1), axis=0, return_inverse=True)
        return cls(pairs[:, 0], pairs[:, 1], index.reshape(-1))


class _BufferBytes:
    """A buffer cut at all ends of accesses, and the pieces that each of them covers."""

    def __init__(self, accesses: Sequence[Access], placements: list[_Placements]) -> None:
        self._rows: list[list[int]] = [placement.index.tolist() for placement in placements]
        runs = [
            [
                access.footprint.patterns[pattern].runs + low
                for low, pattern in zip(p.lows.tolist(), p.patterns.tolist(), strict=True)
            ]
            for access, p in zip(accesses, placements, strict=True)
        ]
        cuts = distinct(np.concatenate([run for of_access in runs for run in of_access]))
        self.count = cuts.size
        self._pieces: list[list[slice | Column]] = [
            [covered_pieces(np.searchsorted(cuts, run)) for run in of_access] for of_access in runs
        ]

    @classmethod
    def of(cls, accesses: Sequence[Access]) -> _BufferBytes | None:
        """None where there are too many runs."""
        placements = [_Placements.of(access) for access in accesses]
        total = sum(
            len(access.footprint.patterns[pattern].runs)
            for access, placement in zip(accesses, placements, strict=True)
            for pattern in placement.patterns.tolist()
        )
        return cls(accesses, placements) if total <= MOST_RUNS else None

    def pieces(self, access: int, row: int) -> slice | Column:
        """The pieces that an access covers in a row."""
        return self._pieces[access][self._rows[access][row]]


@dataclass
class _PairCount:
    """How often an operand read a value of another's: as a pair should, and otherwise."""

    paired: int = 0
    otherwise: int = 0


@dataclass
class _Follower:
    """Goes through the accesses in program order; values are numbered write by write."""

    bytes_of: _BufferBytes
    accesses: Sequence[Access]
    writer: Column = field(init=False)  # the value in each piece
    values: list[tuple[int, int]] = field(default_factory=list)  # the access and the row
    counts: dict[tuple[int, int], _PairCount] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.writer = np.full(self.bytes_of.count, _NOBODY, np.int64)

    def write(self, access: int, row: int) -> None:
        """A value comes to lie in the pieces of an access."""
        self.writer[self.bytes_of.pieces(access, row)] = len(self.values)
        self.values.append((access, row))

    def read(self, access: int, row: int) -> None:
        """Note whose values an access sees."""
        seen = self.writer[self.bytes_of.pieces(access, row)]
        value = int(seen[0])
        if (seen == value).all():
            self._note(value, access, row, is_alone=True)
            return
        for other in distinct(seen).tolist():
            self._note(other, access, row, is_alone=False)

    def _note(self, value: int, reader: int, row: int, *, is_alone: bool) -> None:
        if value == _NOBODY:
            return
        writer, written_row = self.values[value]
        count = self.counts.setdefault((writer, reader), _PairCount())
        a, b = self.accesses[writer], self.accesses[reader]
        if is_alone and a.grid is b.grid and row == written_row:
            count.paired += 1
        else:
            count.otherwise += 1


def _reads_of_buffer(
    accesses: Sequence[Access], bytes_of: _BufferBytes, numbers: dict[int, Column]
) -> Iterator[ValueRead]:
    follower = _Follower(bytes_of, accesses)
    for index, row in _in_program_order(accesses, numbers):
        if accesses[index].is_write:
            follower.write(index, row)
        else:
            follower.read(index, row)
    readers: dict[int, int] = {}
    for writer, _ in follower.counts:
        readers[writer] = readers.get(writer, 0) + 1
    for (writer, reader), count in follower.counts.items():
        write, read = accesses[writer], accesses[reader]
        if _computes(write):
            is_pair = not count.otherwise and count.paired == write.grid.rows
            yield ValueRead(write, read, is_pair and readers[writer] == 1)


def _in_program_order(
    accesses: Sequence[Access], numbers: dict[int, Column]
) -> Iterator[tuple[int, int]]:
    """Accesses and rows; a task reads before it writes."""
    times = [2 * numbers[access.position] + access.is_write for access in accesses]
    order = np.argsort(np.concatenate(times), kind="stable")
    index = np.repeat(np.arange(len(accesses)), [column.size for column in times])
    row = np.concatenate([np.arange(column.size) for column in times])
    return zip(index[order].tolist(), row[order].tolist(), strict=True)

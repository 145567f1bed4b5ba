"""Who reads what each task wrote, followed through memory in program order.

A program without races gives every read the same value under every schedule, and program order is
one of them: so it is enough to follow that. Bytes between all ends of accesses behave alike; each
such piece of a buffer remembers who wrote it last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, pairwise

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
        count = len(footprint.patterns)
        key = np.asarray(footprint.low, np.int64) * count + footprint.pattern_index
        keys, index = np.unique(np.broadcast_to(key, (rows,)), return_inverse=True)
        return cls(keys // count, keys % count, index)


class _BufferBytes:
    """A buffer cut at all ends of accesses, and the pieces that each of them covers."""

    def __init__(self, accesses: Sequence[Access], placements: list[_Placements]) -> None:
        self._rows: list[list[int]] = [placement.index.tolist() for placement in placements]
        runs = [
            access.footprint.patterns[pattern].runs + low
            for access, p in zip(accesses, placements, strict=True)
            for low, pattern in zip(p.lows.tolist(), p.patterns.tolist(), strict=True)
        ]
        together = np.concatenate(runs)
        cuts = distinct(together)
        self.count = cuts.size
        ends = np.searchsorted(cuts, together)
        stops = np.cumsum([len(run) for run in runs]).tolist()
        pieces = iter([covered_pieces(ends[a:b]) for a, b in pairwise([0, *stops])])
        self._pieces: list[list[slice | Column]] = [
            list(islice(pieces, p.lows.size)) for p in placements
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
class _Follower:
    """Goes through the accesses in program order; values are numbered write by write."""

    bytes_of: _BufferBytes
    writer: Column = field(init=False)  # the value in each piece
    values: list[tuple[int, int]] = field(default_factory=list)  # the access and the row
    alone: list[tuple[int, int, int]] = field(default_factory=list)  # value, reader and its row
    mixed: list[tuple[Column, int]] = field(default_factory=list)  # values beside others, reader

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
        if seen.size == 1 or (seen == value).all():
            self.alone.append((value, access, row))
        else:
            self.mixed.append((distinct(seen), access))

    def pairs(self, grids: Column) -> Iterator[tuple[int, int, int, int]]:
        """Writer, reader, how often they were a pair, and how often something else.

        They are one where both are alone in an iteration of the same loop.
        """
        values = np.array(self.values, np.int64).reshape(-1, 2)
        value, reader, row = np.array(self.alone, np.int64).reshape(-1, 3).T
        sizes = [found.size for found, _ in self.mixed]
        others = np.repeat(np.array([access for _, access in self.mixed], np.int64), sizes)
        value = np.concatenate([value, *(found for found, _ in self.mixed)])
        reader = np.concatenate([reader, others])
        row = np.concatenate([row, np.full(others.size, _NOBODY)])
        is_known = value != _NOBODY
        value, reader, row = value[is_known], reader[is_known], row[is_known]
        writer, written = values[value].T
        is_pair = (row == written) & (grids[writer] == grids[reader])
        keys, index = np.unique(writer * grids.size + reader, return_inverse=True)
        paired, total = np.bincount(index[is_pair], minlength=keys.size), np.bincount(index)
        columns = (keys // grids.size, keys % grids.size, paired, total - paired)
        yield from zip(*(column.tolist() for column in columns), strict=True)


def _reads_of_buffer(
    accesses: Sequence[Access], bytes_of: _BufferBytes, numbers: dict[int, Column]
) -> Iterator[ValueRead]:
    follower = _Follower(bytes_of)
    is_write = [access.is_write for access in accesses]
    for index, row in _in_program_order(accesses, numbers):
        if is_write[index]:
            follower.write(index, row)
        else:
            follower.read(index, row)
    known: dict[int, int] = {}
    grids = np.array([known.setdefault(id(access.grid), len(known)) for access in accesses])
    pairs = list(follower.pairs(grids))
    readers = Counter(writer for writer, *_ in pairs)
    for writer, reader, paired, otherwise in pairs:
        write, read = accesses[writer], accesses[reader]
        if _computes(write):
            is_pair = not otherwise and paired == write.grid.rows
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

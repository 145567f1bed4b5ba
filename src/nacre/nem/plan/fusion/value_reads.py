"""Who reads what each task wrote, followed through memory in program order.

A program without races gives every read the same value under every schedule, and program order is
one of them: so it is enough to follow that. Of every class of bytes the last write before a read is
what it sees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from msgspec import Struct

from nacre.base.term_columns import Column, distinct
from nacre.nem.plan.coverage import buffer_uses
from nacre.nem.plan.fusion.byte_classes import ByteClasses, expand_ranges
from nacre.nem.plan.fusion.repeated_reads import repeated_reads
from nacre.nem.plan.plan import Access, Plan
from nacre.nem.plan.sequence import task_numbers

_NOBODY = -1
_MOST_EVENTS = 1 << 31  # two of them are one number


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
        classes = ByteClasses.of(accesses)
        if classes is not None:
            known.add(use.buffer.index)
            found += _reads_of_buffer(accesses, classes, numbers)
    used = {access.buffer_index for access in _accesses(plan)}
    found.sort(key=lambda one: (one.read.position, one.write.position))
    return ValueReads(tuple(found), frozenset(used - known))


def _accesses(plan: Plan) -> Iterator[Access]:
    by_block = chain.from_iterable(blocks.values() for blocks in plan.accesses.values())
    return chain.from_iterable(by_block)


def _computes(access: Access) -> bool:
    return access.task.op not in ("transfer", "store")


@dataclass(frozen=True, eq=False)
class _Events:
    """Accesses in rows, in program order; a task reads before it writes."""

    access: Column
    row: Column
    place: Column
    is_write: Column

    @classmethod
    def of(
        cls, accesses: Sequence[Access], classes: ByteClasses, numbers: dict[int, Column]
    ) -> _Events:
        """All of them, but repeated reads of what stays as it is."""
        sizes = np.array([access.grid.rows for access in accesses])
        access = np.repeat(np.arange(len(accesses)), sizes)
        row = expand_ranges(np.zeros_like(sizes), sizes)
        is_write = np.array([access.is_write for access in accesses])[access]
        times = 2 * np.concatenate([numbers[access.position] for access in accesses]) + is_write
        followed = np.flatnonzero(~repeated_reads(accesses, classes))
        order = followed[np.argsort(times[followed], kind="stable")]
        return cls(access[order], row[order], classes.place_of[order], is_write[order])


@dataclass(frozen=True, eq=False)
class _SeenWrites:
    """What reads see, as events: the write in each class of bytes that a read touches."""

    read: Column
    write: Column  # or nobody's
    is_alone: Column  # whether it is all that this read sees

    @classmethod
    def of(cls, events: _Events, classes: ByteClasses) -> _SeenWrites:
        counts = np.diff(classes.first)[events.place]
        event = np.repeat(np.arange(counts.size), counts)
        touched = classes.classes[expand_ranges(classes.first[events.place], counts)]
        # Few classes are sorted many times faster, by digits; events stay in their order.
        narrow = touched.astype(np.uint16) if classes.count <= 1 << 16 else touched
        order = np.argsort(narrow, kind="stable")
        at, offset = event[order], touched[order] * counts.size
        latest = np.maximum.accumulate(np.where(events.is_write[at], at + offset, _NOBODY))
        seen = np.empty_like(event)
        seen[order] = np.maximum(latest - offset, _NOBODY)  # below: a write to another class
        is_read = ~events.is_write[event]
        return cls._distinct_writes(event[is_read], seen[is_read])

    @classmethod
    def _distinct_writes(cls, read: Column, write: Column) -> _SeenWrites:
        """Each write of a read once."""
        starts = np.flatnonzero(np.diff(read, prepend=_NOBODY))
        if not starts.size:
            return cls(read, write, np.zeros(0, bool))
        is_alone = np.minimum.reduceat(write, starts) == np.maximum.reduceat(write, starts)
        mixed = np.repeat(~is_alone, np.diff(starts, append=read.size))
        alone = starts[is_alone]
        several = distinct(read[mixed] * _MOST_EVENTS + write[mixed] + 1)
        reads = np.concatenate([read[alone], several // _MOST_EVENTS])
        writes = np.concatenate([write[alone], several % _MOST_EVENTS - 1])
        return cls(reads, writes, np.arange(reads.size) < alone.size)


def _reads_of_buffer(
    accesses: Sequence[Access], classes: ByteClasses, numbers: dict[int, Column]
) -> Iterator[ValueRead]:
    events = _Events.of(accesses, classes, numbers)
    pairs = list(_pairs(accesses, events, _SeenWrites.of(events, classes)))
    readers = Counter(writer for writer, *_ in pairs)
    for writer, reader, paired, otherwise in pairs:
        write, read = accesses[writer], accesses[reader]
        if _computes(write):
            is_pair = not otherwise and paired == write.grid.rows
            yield ValueRead(write, read, is_pair and readers[writer] == 1)


def _pairs(
    accesses: Sequence[Access], events: _Events, seen: _SeenWrites
) -> Iterator[tuple[int, int, int, int]]:
    """Writer, reader, how often they were a pair, and how often something else.

    They are one where both are alone in an iteration of the same loop.
    """
    known: dict[int, int] = {}
    grids = np.array([known.setdefault(id(access.grid), len(known)) for access in accesses])
    is_known = seen.write != _NOBODY
    read, write = seen.read[is_known], seen.write[is_known]
    writer, reader = events.access[write], events.access[read]
    is_pair = seen.is_alone[is_known] & (events.row[write] == events.row[read])
    is_pair &= grids[writer] == grids[reader]
    keys, index = np.unique(writer * grids.size + reader, return_inverse=True)
    paired, total = np.bincount(index[is_pair], minlength=keys.size), np.bincount(index)
    columns = (keys // grids.size, keys % grids.size, paired, total - paired)
    return zip(*(column.tolist() for column in columns), strict=True)

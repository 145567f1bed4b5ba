"""Which bytes of a buffer tasks read and write over the whole program, as sorted intervals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nacre.base.term_columns import Column
from nacre.nem.model.program import Buffer
from nacre.nem.plan.columns import OncePerPlan
from nacre.nem.plan.footprints import NOTHING, Runs, union
from nacre.nem.plan.plan import Access, Plan


def is_covered(runs: Runs, cover: Runs) -> Column:
    """Which runs lie inside one run of a cover, whose runs are sorted and apart."""
    if not len(cover):
        return np.zeros(len(runs), bool)
    candidate = np.searchsorted(cover[:, 0], runs[:, 0], side="right") - 1
    inside: Column = (candidate >= 0) & (cover[np.maximum(candidate, 0), 1] >= runs[:, 1])
    return inside


def start_of(access: Access) -> object:
    """The first byte that an access touches in every iteration: equal ones share a byte."""
    low = access.footprint.low
    return low if isinstance(low, int) else (id(access.grid), low.tobytes())


@dataclass(frozen=True)
class AccessCoverage:
    """An access and the bytes that it touches in any iteration."""

    access: Access

    @property
    def runs(self) -> Runs:
        """The bytes, sorted."""
        return self.access.footprint.runs

    def runs_in(self, row: int) -> Runs:
        """The bytes of one iteration."""
        return self.access.footprint.runs_in(row)


@dataclass(frozen=True, eq=False)
class BufferUse:
    """Who reads and writes a buffer, and which bytes."""

    buffer: Buffer
    reads: tuple[AccessCoverage, ...]
    writes: tuple[AccessCoverage, ...]

    @cached_property
    def written_runs(self) -> Runs:
        """The bytes that any task writes."""
        return union(covered.runs for covered in self.writes)

    @cached_property
    def reads_by_task(self) -> dict[int, list[Runs]]:
        """The runs that each task reads, by its position."""
        by_task: dict[int, list[Runs]] = {}
        for covered in self.reads:
            by_task.setdefault(covered.access.position, []).append(covered.runs)
        return by_task

    @cached_property
    def readers_from(self) -> dict[object, list[int]]:
        """The positions of tasks that read from some bytes on, by `start_of`; a few are enough."""
        readers: dict[object, list[int]] = {}
        for covered in self.reads:
            positions = readers.setdefault(start_of(covered.access), [])
            if len(positions) < 2 or positions[0] == positions[1]:
                positions.append(covered.access.position)
        return readers

    @cached_property
    def reads_of_writes(self) -> dict[int, int]:
        """How many runs of reads meet each write, by the identity of the access."""
        if not self.writes:
            return {}
        parts = [covered.runs for covered in self.writes]
        met = self.readers.meetings(np.concatenate(parts))
        begins = np.cumsum([0, *map(len, parts)])[:-1]
        counts = np.add.reduceat(met, begins).tolist()
        return {id(c.access): n for c, n in zip(self.writes, counts, strict=True)}

    @cached_property
    def readers(self) -> RunCounter:
        """The runs of all reads."""
        return RunCounter([covered.runs for covered in self.reads])

    @cached_property
    def writers(self) -> RunCounter:
        """The runs of all writes."""
        return RunCounter([covered.runs for covered in self.writes])


class RunCounter:
    """Runs of many accesses, to be counted where they meet others."""

    def __init__(self, parts: list[Runs]) -> None:
        runs = np.concatenate([NOTHING, *parts])
        self._lows, self._highs = np.sort(runs[:, 0]), np.sort(runs[:, 1])

    def count_meeting(self, runs: Runs) -> int:
        """How many of the runs share a byte with the given ones, once for each of those."""
        return int(self.meetings(runs).sum())

    def meetings(self, runs: Runs) -> Column:
        """How many of the runs share a byte with each given one."""
        begun = np.searchsorted(self._lows, runs[:, 1], side="left")
        over = np.searchsorted(self._highs, runs[:, 0], side="right")
        return begun - over


def _buffer_uses(plan: Plan) -> tuple[BufferUse, ...]:
    """The buffers that tasks use, without those of which not every use is known."""
    by_buffer = {
        index: [access for accesses in by_block.values() for access in accesses]
        for index, by_block in plan.accesses.items()
    }
    unknown = _unknown_buffers(plan, by_buffer)
    uses = []
    for index, accesses in sorted(by_buffer.items()):
        accesses.sort(key=lambda access: access.position)
        if index not in unknown:
            reads = tuple(AccessCoverage(access) for access in accesses if not access.is_write)
            writes = tuple(AccessCoverage(access) for access in accesses if access.is_write)
            uses.append(BufferUse(plan.program.buffers[index], reads, writes))
    return tuple(uses)


buffer_uses = OncePerPlan(_buffer_uses)


def _unknown_buffers(plan: Plan, by_buffer: dict[int, list[Access]]) -> set[int]:
    """Buffers that some task uses in a way that could not be expanded."""
    known = {id(access.operand) for accesses in by_buffer.values() for access in accesses}
    unknown: set[int] = set()
    for task in plan.program.tasks:
        for operand in task.operands:
            region = operand.region
            if region is None or region.buffer is None:
                return {buffer.index for buffer in plan.program.buffers}
            if id(operand) not in known:
                unknown.add(region.buffer.index)
    return unknown

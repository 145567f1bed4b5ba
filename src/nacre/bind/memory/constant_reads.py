"""Who reads the constants of a program, in which parts, and who else meets those."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod

import numpy as np
from msgspec import Struct

from nacre.base.elements import ELEMENT_TYPES
from nacre.base.term_columns import Column, distinct
from nacre.nem.model.program import Region, Task
from nacre.nem.plan.calls import resolve_symbols, symbolic_terms, varying_parts
from nacre.nem.plan.coverage import AccessCoverage, buffer_uses
from nacre.nem.plan.footprints import Runs, copies_elements
from nacre.nem.plan.plan import Access, Plan

# Why a constant is moved as it is, in a sentence about any such transfer.
PLAIN_REASONS = {
    "compressed": "the program has it compressed already",
    "way": "nothing is decompressed on this way",
    "host": "the host fills or reads the buffer",
    "apart": "its elements lie apart",
    "varies": "its size varies from iteration to iteration",
    "unknown": "not all of its bytes are known",
    "written": "a task writes to it",
    "read": "another task reads it as it is",
    "cuts": "it is read in several parts that overlap, or as other elements",
    "larger": "no mode takes fewer bytes",
    "slower": "the WDM would hold its units longer",
    "contended": "there are too few WDMs: with it all together would take longer",
}


class PlainTransfer(Struct, frozen=True, eq=False):
    """A transfer of constants that moves them as they are, and why."""

    task: Task
    reason: str
    detail: str = ""

    @property
    def sentence(self) -> str:
        """The reason in words."""
        return PLAIN_REASONS[self.reason]


class ConstantRead(Struct, frozen=True, eq=False):
    """A transfer that reads parts of one size without a gap, and where these begin."""

    task: Task
    source: Region
    is_typed: bool  # elements are moved, and not bytes
    starts: Column  # each once
    size: int
    times: int

    @property
    def is_whole(self) -> bool:
        """Whether its elements fill their bytes: an odd number of four bits does not."""
        if not self.is_typed:
            return True
        bits = ELEMENT_TYPES[self.source.elem or "u8"].bits
        return bool(prod(resolve_symbols(self.source.shape, {})) * bits == self.size * 8)


class ConstantReads(Struct, frozen=True, eq=False):
    """The transfers that may be compressed, those that read the same together, and the others."""

    groups: tuple[tuple[ConstantRead, ...], ...]
    plain: tuple[PlainTransfer, ...]


def constant_reads(
    plan: Plan, buffer: int, data: bytes, ways: Iterable[tuple[str, str]], *, is_of_host: bool
) -> ConstantReads:
    """The reads of a buffer that holds constants; the WDM lies on the `ways` between levels."""
    uses = next((use for use in buffer_uses(plan) if use.buffer.index == buffer), None)
    if uses is None:
        return ConstantReads((), ())
    found: list[ConstantRead] = []
    plain: list[PlainTransfer] = []
    others: list[AccessCoverage] = []
    allowed = frozenset(ways)
    for covered in uses.reads:
        access = covered.access
        reason = ("host", "") if is_of_host else _refusal(access, len(data), allowed)
        if reason is None:
            found.append(_read_of(access))
            continue
        others.append(covered)
        if access.task.op == "transfer":
            plain.append(PlainTransfer(access.task, *reason))
    refused = _refused_by_cuts(found) | _refused_by_others(found, uses.writes, others)
    groups: list[tuple[ConstantRead, ...]] = []
    for group in _groups(found):
        cause = next((refused[id(read)] for read in group if id(read) in refused), None)
        if cause is None:
            groups.append(tuple(group))
        else:
            plain += (PlainTransfer(one.task, *refused.get(id(one), cause)) for one in group)
    plain.sort(key=lambda one: one.task.position)
    return ConstantReads(tuple(groups), tuple(plain))


_Reason = tuple[str, str]


def _refusal(access: Access, known: int, ways: frozenset[tuple[str, str]]) -> _Reason | None:
    """Why a read cannot be compressed, whoever else reads."""
    task, region, footprint = access.task, access.operand.region, access.footprint
    if region is None or region.compression is not None:
        return "compressed", ""
    if task.op != "transfer" or (way := _way(task)) not in ways:
        return "way", f"from {way[0]} to {way[1]}" if task.op == "transfer" else ""
    if region.strides is not None or not footprint.is_dense:
        return "apart", ""
    parts = (*varying_parts(task), region.extent)
    if next(symbolic_terms(parts), None) is not None:
        return "varies", ""
    return ("unknown", "") if footprint.end > known else None


def _way(task: Task) -> tuple[str, str]:
    levels = {
        o.access: o.region.buffer.level for o in task.operands if o.region and o.region.buffer
    }
    return str(levels.get("read")), str(levels.get("write"))


def _read_of(access: Access) -> ConstantRead:
    footprint, region = access.footprint, access.operand.region
    assert region is not None
    starts = distinct(np.asarray(footprint.low, np.int64).reshape(-1))
    size = footprint.patterns[0].span
    is_typed = copies_elements(access.task)
    return ConstantRead(access.task, region, is_typed, starts, size, access.grid.rows)


class _Meetings:
    """Runs of several tasks, to be asked for one that meets some bytes."""

    def __init__(self, parts: Sequence[tuple[Task, Runs]]) -> None:
        runs = np.concatenate([np.zeros((0, 2), np.int64), *(runs for _, runs in parts)])
        owners = np.repeat(np.arange(len(parts)), [len(runs) for _, runs in parts])
        order = np.argsort(runs[:, 0], kind="stable")
        self._tasks = [task for task, _ in parts]
        self._starts, ends = runs[order, 0], runs[order, 1]
        self._reach = np.maximum.accumulate(ends) if len(ends) else ends
        # The run that reaches furthest of all that begin before one.
        furthest = np.where(ends == self._reach, np.arange(len(ends)), 0)
        self._owner = owners[order][np.maximum.accumulate(furthest)] if len(ends) else owners

    def met_by(self, read: ConstantRead) -> Task | None:
        """A task that touches a byte which a read takes."""
        before = np.searchsorted(self._starts, read.starts + read.size, side="left") - 1
        if not self._starts.size:
            return None
        met = np.flatnonzero((before >= 0) & (self._reach[np.maximum(before, 0)] > read.starts))
        return self._tasks[int(self._owner[before[met[0]]])] if met.size else None


def _refused_by_others(
    reads: Sequence[ConstantRead],
    writes: Iterable[AccessCoverage],
    others: Iterable[AccessCoverage],
) -> dict[int, _Reason]:
    """Reads that meet a write, or a read of the bytes as they are; by id."""
    found: dict[int, _Reason] = {}
    for reason, accesses in (("written", writes), ("read", others)):
        meetings = _Meetings([(covered.access.task, covered.runs) for covered in accesses])
        for read in reads:
            task = meetings.met_by(read)
            if task is not None:
                found.setdefault(id(read), (reason, f"`{task.name}`"))
    return found


def _refused_by_cuts(reads: Sequence[ConstantRead]) -> dict[int, _Reason]:
    """Reads of parts that overlap and are not the same, and of those that these overlap."""
    if not reads:
        return {}
    starts = np.concatenate([read.starts for read in reads])
    ends = np.concatenate([read.starts + read.size for read in reads])
    owners = np.repeat(np.arange(len(reads)), [read.starts.size for read in reads])
    order = np.lexsort((ends, starts))
    starts, ends, owners = starts[order], ends[order], owners[order]
    is_apart = np.ones(starts.size, np.bool_)
    is_apart[1:] = starts[1:] >= np.maximum.accumulate(ends)[:-1]
    heap = np.cumsum(is_apart) - 1  # of parts that overlap
    first = np.flatnonzero(is_apart)[heap]
    differs = (starts != starts[first]) | (ends != ends[first])
    mixed = np.bincount(heap, differs) > 0
    found: dict[int, _Reason] = {}
    for at in np.flatnonzero(mixed[heap]).tolist():
        read, other = reads[int(owners[at])], reads[int(owners[first[at]])]
        found.setdefault(id(read), ("cuts", "" if read is other else f"`{other.task.name}`"))
    return found


def _groups(reads: Sequence[ConstantRead]) -> Iterator[list[ConstantRead]]:
    """Reads that have a part in common, one group after the other."""
    leader = list(range(len(reads)))

    def find(at: int) -> int:
        while leader[at] != at:
            leader[at] = leader[leader[at]]
            at = leader[at]
        return at

    first: dict[tuple[int, int], int] = {}
    for number, read in enumerate(reads):
        for start in read.starts.tolist():
            other = first.setdefault((start, read.size), number)
            if find(other) != find(number):
                leader[max(find(other), find(number))] = min(find(other), find(number))
    groups: dict[int, list[ConstantRead]] = {}
    for number, read in enumerate(reads):
        groups.setdefault(find(number), []).append(read)
    yield from groups.values()

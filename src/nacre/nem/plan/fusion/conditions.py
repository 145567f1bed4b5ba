"""Why a value between two tasks cannot be streamed: one function a reason, asked in turn."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
from msgspec import Struct

from nacre.base.elements import ELEMENT_TYPES
from nacre.nem.model.devices import Device
from nacre.nem.model.program import Operand, Region, Statement, Task
from nacre.nem.plan.footprints import copies_elements
from nacre.nem.plan.fusion.stages import LINKS, PlacedStage, PlaceStage
from nacre.nem.plan.fusion.value_reads import ValueRead
from nacre.nem.plan.overlap import aligned_overlaps
from nacre.nem.plan.placement import is_in_l1
from nacre.nem.plan.plan import Access, Plan

# Every reason by which a pair is refused, in a sentence about any such pair.
REASONS = MappingProxyType(
    {
        "units": "their units do not chain",
        "memory": "the value does not lie in L1",
        "materialized": "`@materialized` forbids it",
        "imported": "the host provides the buffer",
        "observed": "the buffer is looked at after the run",
        "unknown": "the uses of the buffer cannot all be followed",
        "bodies": "they stand in different loops",
        "readers": "the value has other readers, or the reader other values",
        "elements": "the reader takes other elements, or in another order",
        "token": "the reader does not name the writer's token",
        "between": "something has to happen between them",
        "overlap": "the reader writes what the chain still reads",
        "bound": "`@resource` binds them to different CSTLs",
        "taken": "the reader streams another value",
        "crossing": "two chains would wait for each other",
        "slower": "the run would take longer or not end: a chain holds all its units",
    }
)


class Refusal(Struct, frozen=True, eq=False):
    """A pair that is not fused: its reason, and what it is about here."""

    writer: Task
    reader: Task
    reason: str
    detail: str = ""


Found = tuple[str, str] | None  # a reason and its detail


@dataclass(frozen=True, eq=False)
class Circumstances:
    """What the conditions look at besides the pair."""

    plan: Plan
    device: Device
    observed: frozenset[str]  # buffers by name
    imported: frozenset[str]
    place: PlaceStage
    stages: dict[int, PlacedStage]  # by a task's position; filled as they are asked for

    def stage(self, task: Task) -> PlacedStage:
        """What a task can be in a chain."""
        if task.position not in self.stages:
            self.stages[task.position] = self.place(task, self.plan, self.device)
        return self.stages[task.position]

    @cached_property
    def accesses(self) -> dict[int, Access]:
        """Every operand with the bytes that it touches, by id; without those that have errors."""
        by_buffer = self.plan.accesses.values()
        return {
            id(a.operand): a for blocks in by_buffer for found in blocks.values() for a in found
        }

    @cached_property
    def barriers(self) -> dict[int, list[int]]:
        """The positions of waits, synchronous tasks and loops in each body, by its loop's."""
        found: dict[int, list[int]] = {}
        for statement in self.plan.program.barriers:
            found.setdefault(_body(statement), []).append(statement.position)
        return found


def _body(statement: Statement) -> int:
    return statement.loops[-1].position if statement.loops else -1


def refusal_of_pair(pair: ValueRead, about: Circumstances) -> Refusal | None:
    """Why a pair cannot be fused, whatever chain it would stand in; None where it can."""
    for condition in _CONDITIONS:
        found = condition(pair, about)
        if found is not None:
            return Refusal(pair.write.task, pair.read.task, *found)
    return None


def _units(pair: ValueRead, about: Circumstances) -> Found:
    writer, reader = about.stage(pair.write.task), about.stage(pair.read.task)
    if writer.stage is None or reader.stage is None or (writer.stage, reader.stage) not in LINKS:
        ends = ((pair.write.task, writer), (pair.read.task, reader))
        return "units", " to ".join(f"`{task.op}` on {placed.unit}" for task, placed in ends)
    return None


def _memory(pair: ValueRead, about: Circumstances) -> Found:
    buffer = about.plan.program.buffers[pair.write.buffer_index]
    if not is_in_l1(buffer):
        return "memory", f"`{buffer.name}` lies in {buffer.memory}"
    if buffer.name in about.imported:
        return "imported", f"`{buffer.name}`"
    return ("observed", f"`{buffer.name}`") if buffer.name in about.observed else None


def _materialized(pair: ValueRead, about: Circumstances) -> Found:
    for access in (pair.write, pair.read):
        if access.operand.carries("materialized"):
            region = access.operand.region
            name = region.name if region is not None and region.name is not None else "a region"
            return "materialized", f"on `{name}`"
    return None


def _bodies(pair: ValueRead, about: Circumstances) -> Found:
    return None if pair.write.grid is pair.read.grid else ("bodies", "")


def _readers(pair: ValueRead, about: Circumstances) -> Found:
    return None if pair.is_one_to_one else ("readers", "")


def _elements(pair: ValueRead, about: Circumstances) -> Found:
    write, read = pair.write.operand.region, pair.read.operand.region
    if write is None or read is None or not _same_bytes(pair.write, pair.read):
        return "elements", "not the same bytes"
    if _shares_bytes(write):
        return "elements", "elements of four bits apart share bytes with others"
    task = pair.read.task
    if task.op == "store" and not copies_elements(task):
        return None if write.strides is None else ("elements", "a copy of bytes that lie apart")
    has_order = write.elem == read.elem and (
        write.strides is read.strides is None
        or (write.shape, write.strides) == (read.shape, read.strides)
    )
    return None if has_order else ("elements", "another type, or other strides")


def _shares_bytes(region: Region) -> bool:
    return region.strides is not None and ELEMENT_TYPES[region.elem or "u8"].bits < 8


def _same_bytes(a: Access, b: Access) -> bool:
    """Whether two accesses of one body touch the same bytes in every row."""
    x, y, rows = a.footprint, b.footprint, a.grid.rows
    if not np.all(np.asarray(x.low) == y.low):
        return False
    if isinstance(x.pattern_index, int) and isinstance(y.pattern_index, int):
        a_runs, b_runs = x.patterns[x.pattern_index].runs, y.patterns[y.pattern_index].runs
        return a_runs is b_runs or np.array_equal(a_runs, b_runs)
    indices = (np.asarray(f.pattern_index, np.int64) for f in (x, y))
    columns = [np.broadcast_to(index, (rows,)) for index in indices]
    together = {(int(i), int(j)) for i, j in np.unique(np.stack(columns, 1), axis=0)}
    return all(np.array_equal(x.patterns[i].runs, y.patterns[j].runs) for i, j in together)


def _token(pair: ValueRead, about: Circumstances) -> Found:
    return None if pair.write.position in pair.read.task.deps else ("token", "")


def _sync(pair: ValueRead, about: Circumstances) -> Found:
    task = pair.write.task
    return ("between", f"`{task.name}` is `.sync`") if task.is_sync else None


Condition = Callable[[ValueRead, Circumstances], Found]
_CONDITIONS: tuple[Condition, ...] = (
    *(_units, _memory, _materialized, _bodies, _readers, _elements, _token, _sync),
)


def refusal_of_member(
    members: Sequence[Task], links: Iterable[ValueRead], pair: ValueRead, about: Circumstances
) -> Refusal | None:
    """Why a chain of tasks cannot go on with the reader of a pair; None where it can."""
    found = (
        _between(members, pair.read.task, about)
        or _overlap(members, [*links, pair], pair.read.task, about)
        or _bound([*members, pair.read.task], about)
    )
    return None if found is None else Refusal(pair.write.task, pair.read.task, *found)


def _between(members: Sequence[Task], reader: Task, about: Circumstances) -> Found:
    """A chain starts at once: nothing that the reader waits for may wait for its head."""
    head = members[0]
    barriers = about.barriers.get(_body(head), [])
    following = bisect_right(barriers, head.position)
    if following < len(barriers) and barriers[following] < reader.position:
        return "between", "a `wait`, a `.sync` task or a loop"
    inside = {task.position for task in members}
    for dep in reader.deps:
        if dep not in inside and about.plan.order.always_before(head.position, dep):
            return "between", f"`{about.plan.program.task_at[dep].name}`"
    return None


def _overlap(
    members: Sequence[Task], links: list[ValueRead], reader: Task, about: Circumstances
) -> Found:
    """The last task of a chain writes while the first still reads."""
    streamed = {id(link.read.operand) for link in links}
    written = [operand for operand in reader.operands if operand.access == "write"]
    for task in members:
        for operand in task.operands:
            if operand.access != "read" or id(operand) in streamed:
                continue
            if any(_meets(operand, other, about) for other in written):
                name = operand.region.name if operand.region is not None else None
                return "overlap", f"`{name or task.name}`"
    return None


def _meets(operand: Operand, written: Operand, about: Circumstances) -> bool:
    """Whether two operands of tasks of one body share a byte in some iteration."""
    a, b = operand.region, written.region
    if a is not None and b is not None and a.buffer is not b.buffer:
        return False
    x, y = about.accesses.get(id(operand)), about.accesses.get(id(written))
    if x is None or y is None:
        return True
    whole = slice(None)
    return bool(aligned_overlaps(x.footprint, y.footprint, whole, whole, y.grid.rows).size)


def _bound(tasks: Sequence[Task], about: Circumstances) -> Found:
    """Post-processing and store-back are halves of one CSTL."""
    bindings = [about.stage(task).binding for task in tasks]
    bound = [b.index for b in bindings if b is not None and b.unit == "CSTL"]
    columns = [np.asarray(index) for index in bound if index is not None]
    same = all(np.all(columns[0] == other) for other in columns[1:])
    return None if same else ("bound", "")

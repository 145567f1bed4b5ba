"""Values that are streamed and never written: whoever reads them is the block that gets them.

Memory is followed in the order of the program's tasks, wherever their blocks stand: of every byte
the last task that wrote it. A streamed value is in no memory, so a read of such bytes is wrong
unless it is the stream's other end, and then all of its bytes must be that value's.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from nacre.base.term_columns import Column
from nacre.nem.model.program import Operand, Task
from nacre.nem.plan.footprints import Footprint
from nacre.nem.plan.plan import Plan
from nacre.nem.plan.sequence import task_numbers
from nacre.tcb.image import STREAM, Block
from nacre.tcb.machine.instances import Instances
from nacre.tcbcheck.accesses import operand_pattern
from nacre.tcbcheck.correspondence import TaskBlock

_NOBODY = -1


class StreamFault(Struct, frozen=True):
    """A read that finds no value, or another than it should."""

    reader: int
    writer: int  # whose value was streamed; -1: nobody's
    operand: Operand


class _Bytes:
    """Of every byte of a buffer the last writer, as runs side by side."""

    def __init__(self) -> None:
        self._starts = [0]
        self._writers = [_NOBODY]

    def _segment_from(self, at: int) -> int:
        index = bisect_right(self._starts, at) - 1
        if self._starts[index] != at:
            index += 1
            self._starts.insert(index, at)
            self._writers.insert(index, self._writers[index - 1])
        return index

    def write(self, low: int, high: int, writer: int) -> None:
        first, end = self._segment_from(low), self._segment_from(high)
        self._starts[first:end] = [low]
        self._writers[first:end] = [writer]

    def writers(self, low: int, high: int) -> set[int]:
        first = bisect_right(self._starts, low) - 1
        end = bisect_right(self._starts, high - 1)
        return set(self._writers[first:end])


class _Member(Struct, frozen=True, eq=False):
    """A task as a block does it: what it reads and writes, and which of it is streamed."""

    owner: int  # the block
    rows: Column  # by row of the block: that of the task's grid
    times: Column  # by row of the block: its number among all tasks of the plan
    accesses: tuple[_TaskAccess, ...]
    streams_into: int | None  # which member


class _TaskAccess(Struct, frozen=True, eq=False):
    operand: Operand
    footprint: Footprint
    is_streamed: bool
    is_write: bool


def find_stream_faults(
    plan: Plan, instances: Instances, tasks: dict[int, TaskBlock]
) -> Iterator[StreamFault]:
    """Reads that do not find the value that the program gives them; `tasks` are by block."""
    if not any(_streams(block) for block in tasks.values()):
        return
    members = _members(plan, instances, tasks)
    starts = np.cumsum([0, *(member.times.size for member in members)])
    memory: dict[int, _Bytes] = {}
    streamed: set[int] = set()  # events whose value is in no memory
    source: dict[int, int] = {}  # the event that streams into one
    for event in np.argsort(np.concatenate([m.times for m in members]), kind="stable").tolist():
        at = bisect_right(starts, event) - 1
        member, row = members[at], event - int(starts[at])
        for access in member.accesses:
            found = memory.setdefault(_buffer(access.operand), _Bytes())
            wrong = _follow(access, int(member.rows[row]), event, found, streamed, source)
            if wrong is not None:
                writer = _NOBODY
                if wrong != _NOBODY:
                    of = bisect_right(starts, wrong) - 1
                    numbers = instances.numbers[members[of].owner]
                    writer = int(numbers[wrong - int(starts[of])])
                reader = int(instances.numbers[member.owner][row])
                yield StreamFault(reader, writer, access.operand)
        if member.streams_into is not None:
            streamed.add(event)
            source[int(starts[member.streams_into]) + row] = event


def _follow(
    access: _TaskAccess,
    row: int,
    event: int,
    found: _Bytes,
    streamed: set[int],
    source: dict[int, int],
) -> int | None:
    """Write, or read and say whose value was found wrongly; -1: nobody's was found rightly."""
    for low, high in _ranges(access.footprint, row):
        if access.is_write:
            found.write(low, high, event)
            continue
        writers = found.writers(low, high)
        wrong = writers - {source.get(event)} if access.is_streamed else writers & streamed
        if wrong or (access.is_streamed and event not in source):
            return max(wrong, default=_NOBODY)
    return None


def _members(plan: Plan, instances: Instances, tasks: dict[int, TaskBlock]) -> list[_Member]:
    """The tasks of all blocks; a conversion stands before the store that does it."""
    numbers = task_numbers(plan)
    members: list[_Member] = []
    first: dict[int, int] = {}  # the member that takes what streams into a block
    for owner, block in sorted(tasks.items(), reverse=True):
        for task in reversed(block.tasks):
            into = len(members) - 1 if task is block.conversion else None
            if task is block.task and block.found.block.is_chained:
                into = first.get(instances.consuming_block.get(owner, _NOBODY))
            first[owner] = len(members)
            times = numbers[task.position][block.rows]
            accesses = tuple(_accesses(plan, block, task))
            members.append(_Member(owner, block.rows, times, accesses, into))
    return members


def _streams(block: TaskBlock) -> bool:
    found = block.found.block
    is_fed = any(o is not None and o.memory == STREAM for o in found.inputs)
    return found.is_chained or is_fed or block.conversion is not None


def _accesses(plan: Plan, block: TaskBlock, task: Task) -> Iterator[_TaskAccess]:
    """What a task reads and writes by the program, reads first, and whether that is streamed."""
    for operand, is_streamed in _operands(block, task):
        footprint = plan.footprint_of(task, operand)
        if footprint is None:
            raise ValueError("a region of a program with errors")
        yield _TaskAccess(operand, footprint, is_streamed, operand.access == "write")


def _operands(block: TaskBlock, task: Task) -> Iterator[tuple[Operand, bool]]:
    """The operands of a task, reads first, and whether they pass by without being written."""
    found, is_conversion = block.found.block, task is block.conversion
    is_store = block.conversion is not None and not is_conversion
    for kind, operands in (("read", found.inputs), ("write", found.outputs)):
        named = [o for o in task.operands if o.access == kind]
        for operand, bound in zip(named, operands, strict=True):
            is_streamed = bound is not None and bound.memory == STREAM
            if (is_conversion and kind == "write") or (is_store and kind == "read"):
                is_streamed = True
            yield operand, is_streamed


def streamed_operands(block: TaskBlock) -> Iterator[Operand]:
    """The operands of a block's tasks whose values are in no memory."""
    for task in block.tasks:
        yield from (operand for operand, is_streamed in _operands(block, task) if is_streamed)


def _buffer(operand: Operand) -> int:
    region = operand.region
    if region is None or region.buffer is None:
        raise ValueError("a region of a program with errors")
    return region.buffer.index


def _ranges(footprint: Footprint, row: int) -> Iterator[tuple[int, int]]:
    low = footprint.low_at(row)
    for start, end in footprint.pattern(row).runs.tolist():
        yield low + start, low + end


def chain_problem(block: TaskBlock, after: Block | None) -> str | None:
    """Why a chained block cannot stream into the one behind it; None where it can."""
    if after is None or after.kind != "task":
        return "streams into no block"
    outputs = [o for o in block.found.block.outputs if o.memory == STREAM]
    inputs = [o for o in after.inputs if o is not None and o.memory == STREAM]
    if len(outputs) != 1 or len(inputs) != 1:
        return "does not stream one value into one operand"
    sent, taken = outputs[0], inputs[0]
    if (sent.elem, sent.dims, sent.strides) == (taken.elem, taken.dims, taken.strides):
        return None
    # Bytes side by side are the same bytes whatever they are called.
    is_dense = sent.strides is None and taken.strides is None
    if is_dense and operand_pattern(sent).span == operand_pattern(taken).span:
        return None
    return "streams elements of another type, shape or order than the next block takes"

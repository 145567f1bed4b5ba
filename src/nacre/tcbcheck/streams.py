"""Values that are streamed and never written: whoever reads them is the block that gets them.

Memory is followed in program order, as the program means it: of every byte the last task that wrote
it. A streamed value is in no memory, so a read of such bytes is wrong unless it is the stream's
other end, and then all of its bytes must be that value's.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from msgspec import Struct

from nacre.nem.model.program import Operand
from nacre.nem.plan.footprints import Footprint
from nacre.nem.plan.plan import Plan
from nacre.tcb.image import STREAM
from nacre.tcbcheck.accesses import operand_pattern
from nacre.tcbcheck.correspondence import TaskBlock
from nacre.tcbcheck.instances import Instances

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

    def _cut(self, at: int) -> int:
        index = bisect_right(self._starts, at) - 1
        if self._starts[index] != at:
            index += 1
            self._starts.insert(index, at)
            self._writers.insert(index, self._writers[index - 1])
        return index

    def write(self, low: int, high: int, writer: int) -> None:
        first, end = self._cut(low), self._cut(high)
        self._starts[first:end] = [low]
        self._writers[first:end] = [writer]

    def writers(self, low: int, high: int) -> set[int]:
        first = bisect_right(self._starts, low) - 1
        end = bisect_right(self._starts, high - 1)
        return set(self._writers[first:end])


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
    accesses = {index: _accesses(plan, block) for index, block in tasks.items()}
    memory: dict[int, _Bytes] = {}
    streamed: set[int] = set()  # instances whose value is in no memory
    source: dict[int, int] = {}  # the instance that streams into one
    owners, rows = instances.block.tolist(), instances.row.tolist()
    for number, (owner, row) in enumerate(zip(owners, rows, strict=True)):
        if owner not in tasks:
            continue
        block = tasks[owner]
        task_row = int(block.rows[row])
        for access in accesses[owner]:
            found = memory.setdefault(_buffer(access.operand), _Bytes())
            for low, high in _ranges(access.footprint, task_row):
                if access.is_write:
                    found.write(low, high, number)
                    continue
                writers = found.writers(low, high)
                if access.is_streamed:
                    wrong = writers - {source.get(number, _NOBODY)}
                else:
                    wrong = writers & streamed
                if wrong or (access.is_streamed and number not in source):
                    yield StreamFault(number, max(wrong, default=_NOBODY), access.operand)
                    break
        if block.found.block.is_chained:
            streamed.add(number)
            source[_following(instances, owner, row)] = number


def _following(instances: Instances, owner: int, row: int) -> int:
    """The instance that a block of a chain streams into: it stands next in the same stream."""
    return int(instances.numbers[owner + 1][row]) if owner + 1 < len(instances.numbers) else _NOBODY


def _streams(block: TaskBlock) -> bool:
    found = block.found.block
    return found.is_chained or any(o is not None and o.memory == STREAM for o in found.inputs)


def _accesses(plan: Plan, block: TaskBlock) -> list[_TaskAccess]:
    """What a task reads and writes by the program, reads first, and whether that is streamed."""
    task, found = block.task, block.found.block
    accesses = []
    for kind, operands in (("read", found.inputs), ("write", found.outputs)):
        named = [o for o in task.operands if o.access == kind]
        for operand, bound in zip(named, operands, strict=True):
            footprint = plan.footprint_of(task, operand)
            if footprint is None:
                raise ValueError("a region of a program with errors")
            is_streamed = bound is not None and bound.memory == STREAM
            accesses.append(_TaskAccess(operand, footprint, is_streamed, kind == "write"))
    return accesses


def _buffer(operand: Operand) -> int:
    region = operand.region
    if region is None or region.buffer is None:
        raise ValueError("a region of a program with errors")
    return region.buffer.index


def _ranges(footprint: Footprint, row: int) -> Iterator[tuple[int, int]]:
    low = footprint.low_at(row)
    for start, end in footprint.pattern(row).runs.tolist():
        yield low + start, low + end


def chain_problem(block: TaskBlock) -> str | None:
    """Why a chained block cannot stream into the one behind it; None where it can."""
    after = block.found.next
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

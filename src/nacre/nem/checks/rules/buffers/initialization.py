"""INI: bytes that are read and never written; hints about work that has no effect."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from nacre.base.diagnostics import Diagnostic
from nacre.base.rules import rule
from nacre.base.term_columns import loop_depths
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.wording import in_iteration, region_text, task_text
from nacre.nem.model.program import Loop, Region, Task
from nacre.nem.plan.columns import as_term
from nacre.nem.plan.coverage import (
    AccessCoverage,
    BufferUse,
    RunCounter,
    buffer_uses,
    is_covered,
    start_of,
)
from nacre.nem.plan.first_writes import UnwrittenRead, unwritten_reads

_MEMORY = "Abstract Machine Model / Memory Levels"
_LOOPS = "Loops and Bounded Pipelining"


@rule("INI01", "read-of-bytes-never-written", _MEMORY, severity="warning")
def read_of_bytes_never_written(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A task reads bytes of an L1 buffer that no earlier task writes.

    L1 holds nothing when a program starts, except in buffers that the host fills; L2 and DDR may
    have been filled by the host. An operation in place reads before it writes.

    Bad (-) and good (+):

          buffer A : L2 (size=64)
          buffer B : L1 (size=64)
        - t = transfer.sync(dst=region(B, 0, 32), src=region(A, 0, 32))
        + t = transfer.sync(dst=region(B, 0, 64), src=region(A, 0, 64))
          s = store.sync(dst=region(A, 0, 64), src=region(B, 0, 64))
    """
    for use in buffer_uses(facts.plan):
        if use.buffer.level != "L1" or use.buffer.name in facts.host_filled:
            continue
        seen: set[int] = set()
        for unwritten in unwritten_reads(facts.plan, use):
            region = unwritten.read.access.operand.region
            if region is None or id(region) in seen:
                continue
            seen.add(id(region))
            yield _never_written(facts, use, unwritten, region)
            if not use.writes:  # once says it all
                break


def _never_written(
    facts: ProgramFacts, use: BufferUse, unwritten: UnwrittenRead, region: Region
) -> Diagnostic:
    access = unwritten.read.access
    varies = not isinstance(access.footprint.low, int) or _is_ever_written(use, unwritten)
    when = in_iteration(access.grid, unwritten.row) if varies else ""
    return read_of_bytes_never_written.at(
        facts.span(access.operand.node.value),
        f"{task_text(access.task)} reads {region_text(region)}{when}, but bytes "
        f"{unwritten.low}..{unwritten.high - 1} of `{use.buffer.name}` hold nothing: "
        f"{_reason_text(use, unwritten)}",
        help="fill them first, or name the buffer as one that the host fills",
    )


def _is_ever_written(use: BufferUse, unwritten: UnwrittenRead) -> bool:
    return bool(
        is_covered(np.array([[unwritten.low, unwritten.high]], np.int64), use.written_runs).all()
    )


def _reason_text(use: BufferUse, unwritten: UnwrittenRead) -> str:
    if not use.writes:
        return "no task writes the buffer"
    return f"no task writes them{' before' if _is_ever_written(use, unwritten) else ''}"


@rule("TOK09", "result-never-read", "Core Program Objects / Tasks and Tokens", severity="info")
def result_never_read(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A task writes to L1 only, and no other task reads a byte of it.

    This is asked only of programs that bring something out of L1: others are fragments.

    Bad (-) and good (+):

          buffer A : L2 (size=64)
          buffer B : L1 (size=64)
          t = transfer.sync(dst=region(B, 0, 32), src=region(A, 0, 32))
          u = transfer.sync(dst=region(B, 32, 32), src=region(A, 32, 32))
        - s = store.sync(dst=region(A, 0, 32), src=region(B, 0, 32))
        + s = store.sync(dst=region(A, 0, 64), src=region(B, 0, 64))
    """
    if not any(_leaves_l1(task) for task in facts.program.tasks):
        return
    uses = {use.buffer.index: use for use in buffer_uses(facts.plan)}
    by_task: dict[int, list[AccessCoverage]] = defaultdict(list)
    for use in uses.values():
        for write in use.writes:
            by_task[write.access.position].append(write)
    for _, writes in sorted(by_task.items()):
        task = writes[0].access.task
        outputs = [o for o in task.operands if o.access == "write"]
        if task.opcode is None or len(outputs) != len(writes):
            continue
        if all(_is_unread(write, uses) for write in writes):
            yield result_never_read.at(
                facts.span(task.node.token or task.node.op),
                f"nothing reads what {task_text(task)} writes to L1",
                help="store the result, or leave the task out",
            )


def _leaves_l1(task: Task) -> bool:
    """Whether a task takes something from L1 to another level."""
    return any(_is_in_l1(r) for r in task.regions("read")) and not all(
        _is_in_l1(r) for r in task.regions("write")
    )


def _is_in_l1(region: Region) -> bool:
    return region.buffer is not None and region.buffer.level == "L1"


def _is_unread(write: AccessCoverage, uses: dict[int, BufferUse]) -> bool:
    """Whether the bytes lie in L1 and no other task reads any of them."""
    region = write.access.operand.region
    if region is None or region.buffer is None or not _is_in_l1(region):
        return False
    use = uses[region.buffer.index]
    if _is_read_from_its_start(write, use):
        return False
    count = use.reads_of_writes[id(write.access)]
    own_reads = use.reads_by_task.get(write.access.position, []) if count else []
    if count > sum(map(len, own_reads)) * len(write.runs):  # more than its own can be
        return False
    return count == (RunCounter(own_reads).count_meeting(write.runs) if own_reads else 0)


def _is_read_from_its_start(write: AccessCoverage, use: BufferUse) -> bool:
    """Whether another task reads what begins at the same bytes: most results are read so."""
    readers = use.readers_from.get(start_of(write.access), ())
    return any(position != write.access.position for position in readers)


@rule("LOP07", "transfer-can-be-hoisted", _LOOPS, severity="info")
def transfer_can_be_hoisted(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A transfer copies the same bytes to the same place in every iteration of a loop.

    Nobody else writes the destination, and nothing in the loop writes the source.

    Bad (-) and good (+):

          buffer A : DDR (size=64)
          buffer B : L2 (size=64)
        + t = transfer.sync(dst=region(B, 0, 64), src=region(A, 0, 64))
          loop i in [0..3]:
        -     t = transfer.sync(dst=region(B, 0, 64), src=region(A, 0, 64))
          endloop
    """
    uses = {use.buffer.index: use for use in buffer_uses(facts.plan)}
    for use in uses.values():
        for write in use.writes:
            task = write.access.task
            loop = task.loops[-1] if task.loops else None
            if task.op != "transfer" or loop is None or not _repeats(facts, task, loop):
                continue
            if _is_only_writer(write, use) and not _source_changes(task, loop, uses):
                yield transfer_can_be_hoisted.at(
                    facts.span(task.node.token or task.node.op),
                    f"{task_text(task)} copies the same bytes in every iteration of loop "
                    f"`{loop.variable.name}`",
                    help="move it before the loop",
                )


def _repeats(facts: ProgramFacts, task: Task, loop: Loop) -> bool:
    """Whether the loop has several iterations and the task's operands ignore which one it is."""
    grid = facts.plan.grid_of(task.loops)
    if grid is None or int(grid.ordinals[-1].max()) == 0:
        return False
    for operand in task.operands:
        region = operand.region
        if region is None:
            return False
        parts = (region.offset, region.extent, *(region.shape or ()), *(region.strides or ()))
        terms = [as_term(part) for part in parts]
        if any(term is None or loop.depth in loop_depths(term) for term in terms):
            return False
    return True


def _is_only_writer(write: AccessCoverage, use: BufferUse) -> bool:
    return use.writers.count_meeting(write.runs) == len(write.runs)


def _source_changes(task: Task, loop: Loop, uses: dict[int, BufferUse]) -> bool:
    """Whether a task inside the loop may write what the transfer reads."""
    for region in task.regions("read"):
        use = uses.get(region.buffer.index) if region.buffer is not None else None
        if use is None:
            return True
        sources = use.reads_by_task.get(task.position, [])
        inside = [
            w.runs for w in use.writes if any(around is loop for around in w.access.task.loops)
        ]
        if any(RunCounter(inside).count_meeting(runs) for runs in sources):
            return True
    return False

"""Whether a block does what its task does, and to the same bytes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from math import prod

import numpy as np

from nacre.base.diagnostics import Diagnostic
from nacre.base.elements import ELEMENT_TYPES
from nacre.nem.model.program import Operand as TaskOperand
from nacre.nem.model.program import Program, Region, Task
from nacre.nem.plan.calls import (
    call_of,
    lookup_at,
    resolve_symbols,
    symbolic_terms,
    varying_parts,
)
from nacre.nem.plan.core_operations import primitive_of, resolve_call
from nacre.nem.plan.footprints import Footprint, copies_elements, footprint
from nacre.nem.run.machine.machine import must_be_deterministic, operation_name
from nacre.tcb.image import Operand, Placement
from nacre.tcbcheck.accesses import BlockAccess, block_accesses
from nacre.tcbcheck.copies import COPIES, chosen_compression, copy_difference
from nacre.tcbcheck.correspondence import TaskBlock
from nacre.tcbcheck.rules import TCB81, TCB82
from nacre.tcbcheck.same_operands import same_quant, same_strides


def compare_meaning(
    program: Program,
    matched: TaskBlock,
    placements: Mapping[str, Placement],
    constants: Collection[str] = (),
) -> Iterator[Diagnostic]:
    """What of a block differs from its task: the first thing of each kind.

    `constants` are the buffers that hold some, of which a block may read compressed ones.
    """
    reason = _operation_difference(matched, constants)
    if reason is not None:
        span = program.span(matched.task.node)
        yield TCB81.at(span, f"the block of `{matched.task.name}` {reason}")
        return
    for access in block_accesses(matched.found):
        difference = byte_difference(matched, access, placements)
        if difference is not None:
            operand = task_operand(matched.task, access)
            span = program.span(matched.task.node if operand is None else operand.node)
            yield TCB82.at(span, f"the block of `{matched.task.name}` {difference}")


def _operation_difference(matched: TaskBlock, constants: Collection[str]) -> str | None:
    task, block = matched.task, matched.found.block
    if varies(matched):
        return "stands for iterations of other shapes, sizes or attributes"
    reads = [o for o in task.operands if o.access == "read"]
    writes = [o for o in task.operands if o.access == "write"]
    if (len(block.inputs), len(block.outputs)) != (len(reads), len(writes)):
        found = f"{len(block.inputs)} inputs and {len(block.outputs)} outputs"
        return f"has {found}, expected {len(reads)} and {len(writes)}"
    if block.is_ordered != must_be_deterministic(task):
        return "does not keep `@deterministic`, or keeps it without need"
    if task.op in COPIES:
        return copy_difference(matched, constants)
    return _computation_difference(matched) or _order_difference(matched, (*reads, *writes))


def _computation_difference(matched: TaskBlock) -> str | None:
    """Whether an operation is another than its task's, or takes operands as something else."""
    task, block = matched.task, matched.found.block
    lookup = lookup_at(varying_parts(task), matched.grid, int(matched.rows[0]))
    call = resolve_call(operation_name(task), call_of(task, lookup, ordered=False))
    primitive = primitive_of(operation_name(task))
    expected = primitive.name if primitive is not None else operation_name(task)
    if block.op != expected:
        return f"calls `{block.op}`, expected `{expected}`"
    if dict(block.attributes) != dict(call.attributes):
        return "has other attributes"
    if block.format != "raw":
        return f"stores as `{block.format}`, and is no store"
    pairs = zip((*block.inputs, *block.outputs), (*call.inputs, *call.outputs), strict=True)
    for number, (operand, type_) in enumerate(pairs):
        if operand is None or type_ is None:
            return f"leaves out operand {number}"
        if (operand.elem, operand.dims) != (type_.elem.name, type_.shape):
            text = f"{type_.elem.name}{list(type_.shape)}"
            return f"takes operand {number} as {operand.elem}{list(operand.dims)}, expected {text}"
        if not same_quant(operand, type_.quant):
            return f"takes operand {number} by another `quant`"
        if operand.compression is not None:
            return f"takes operand {number} compressed"
    return None


def _order_difference(matched: TaskBlock, named: tuple[TaskOperand, ...]) -> str | None:
    """Whether an operation takes elements in another order than its task."""
    block = matched.found.block
    pairs = zip((*block.inputs, *block.outputs), named, strict=True)
    for number, (operand, of_task) in enumerate(pairs):
        region = of_task.region
        if operand is None or region is None or not has_strides(operand, region, matched):
            return f"takes the elements of operand {number} in another order"
    return None


def has_strides(operand: Operand, region: Region, matched: TaskBlock) -> bool:
    """Whether the elements of an operand lie as those of a region do."""
    strides = None
    if region.strides is not None:
        lookup = lookup_at(region.strides, matched.grid, int(matched.rows[0]))
        strides = resolve_symbols(region.strides, lookup)
    return same_strides(operand.dims, operand.strides, strides)


def varies(matched: TaskBlock) -> bool:
    """Whether what a block says once for all differs among the iterations that it stands for."""
    task = matched.task
    regions = [o.region for o in task.operands if o.region is not None]
    extents = tuple(r.extent for r in regions) if task.op in COPIES else ()
    for term in dict.fromkeys(symbolic_terms((*varying_parts(task), *extents))):
        column = np.broadcast_to(np.asarray(matched.grid.evaluate(term)), (matched.grid.rows,))
        values = column[matched.rows]
        if values.size and bool((values != values[0]).any()):
            return True
    return False


def task_operand(task: Task, access: BlockAccess) -> TaskOperand | None:
    """The operand of a task that an access of its block stands for."""
    kind = "write" if access.is_write else "read"
    operands = [o for o in task.operands if o.access == kind]
    return operands[access.number] if access.number < len(operands) else None


def byte_difference(
    matched: TaskBlock, access: BlockAccess, placements: Mapping[str, Placement]
) -> str | None:
    """How the bytes that a block touches differ from those of its task; None: they do not."""
    operand = task_operand(matched.task, access)
    region = operand.region if operand is not None else None
    if operand is None or region is None or region.buffer is None:
        return f"touches bytes by {access.name}, which the task does not have"
    buffer = region.buffer
    if access.operand.memory != buffer.memory:
        return f"has {access.name} in {access.operand.memory}, expected {buffer.memory}"
    expected = _expected_footprint(matched, operand)
    if expected is None:
        raise ValueError("a region of a program with errors")
    low = np.broadcast_to(np.asarray(expected.low), (matched.grid.rows,))[matched.rows]
    base = placements[buffer.name].address
    wrong = np.flatnonzero(access.address != low + base)
    if wrong.size:
        row = int(wrong[0])
        iteration = list(matched.found.grid.iteration(row))
        found, right = int(access.address[row]), int(low[row]) + base
        return f"has {access.name} at {found:#x} in iteration {iteration}, expected {right:#x}"
    if not access.is_write and chosen_compression(access.operand, operand):
        return _room_difference(access, expected.pattern(int(matched.rows[0])).span)
    if not np.array_equal(access.pattern.runs, expected.pattern(int(matched.rows[0])).runs):
        return f"touches other bytes by {access.name} than the region of `{buffer.name}` has"
    return None


def _room_difference(access: BlockAccess, plain_bytes: int) -> str | None:
    """Compressed elements lie where the plain ones would, and take no more bytes."""
    elements = prod(access.operand.dims) * ELEMENT_TYPES[access.operand.elem].bits
    if elements != plain_bytes * 8:
        return f"decompresses {elements} bits by {access.name}, expected {plain_bytes * 8}"
    return None if access.pattern.span <= plain_bytes else f"reads more bytes by {access.name}"


def _expected_footprint(matched: TaskBlock, operand: TaskOperand) -> Footprint | None:
    """The bytes of a task's operand; a copy of bytes writes as many as its source has."""
    task, grid = matched.task, matched.grid
    own = footprint(task, operand, grid)
    if own is None or task.op not in COPIES or copies_elements(task) or operand.access == "read":
        return own
    source = next(o for o in task.operands if o.access == "read")
    other = footprint(task, source, grid)
    if other is None or source.region is None or source.region.compression is not None:
        return own
    return Footprint(own.low, other.patterns, other.pattern_index)

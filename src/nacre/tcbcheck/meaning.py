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
from nacre.nem.plan.footprints import Footprint, copies_elements, footprint, quantises
from nacre.nem.run.machine.machine import must_be_deterministic, operation_name
from nacre.tcb.image import Operand, Placement
from nacre.tcbcheck.accesses import BlockAccess, block_accesses
from nacre.tcbcheck.correspondence import TaskBlock
from nacre.tcbcheck.rules import TCB81, TCB82

_COPIES = ("transfer", "store")


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
    row = int(matched.rows[0])
    if varies(matched):
        return "stands for iterations of other shapes, sizes or attributes"
    reads = [o for o in task.operands if o.access == "read"]
    writes = [o for o in task.operands if o.access == "write"]
    if (len(block.inputs), len(block.outputs)) != (len(reads), len(writes)):
        found = f"{len(block.inputs)} inputs and {len(block.outputs)} outputs"
        return f"has {found}, expected {len(reads)} and {len(writes)}"
    if block.is_ordered != must_be_deterministic(task):
        return "does not keep `@deterministic`, or keeps it without need"
    if task.op in _COPIES:
        return _copy_difference(matched, constants)
    lookup = lookup_at(varying_parts(task), matched.grid, row)
    call = resolve_call(operation_name(task), call_of(task, lookup, ordered=False))
    primitive = primitive_of(operation_name(task))
    expected = primitive.name if primitive is not None else operation_name(task)
    if block.op != expected:
        return f"calls `{block.op}`, expected `{expected}`"
    if dict(block.attributes) != dict(call.attributes):
        return "has other attributes"
    pairs = zip((*block.inputs, *block.outputs), (*call.inputs, *call.outputs), strict=True)
    for number, (operand, type_) in enumerate(pairs):
        if operand is None or type_ is None:
            return f"leaves out operand {number}"
        if (operand.elem, operand.dims) != (type_.elem.name, type_.shape):
            text = f"{type_.elem.name}{list(type_.shape)}"
            return f"takes operand {number} as {operand.elem}{list(operand.dims)}, expected {text}"
        if not same_quant(operand, type_.quant):
            return f"takes operand {number} by another `quant`"
    return None


def varies(matched: TaskBlock) -> bool:
    """Whether what a block says once for all differs among the iterations that it stands for."""
    task = matched.task
    regions = [o.region for o in task.operands if o.region is not None]
    extents = tuple(r.extent for r in regions) if task.op in _COPIES else ()
    for term in dict.fromkeys(symbolic_terms((*varying_parts(task), *extents))):
        column = np.broadcast_to(np.asarray(matched.grid.evaluate(term)), (matched.grid.rows,))
        values = column[matched.rows]
        if values.size and bool((values != values[0]).any()):
            return True
    return False


def _copy_difference(matched: TaskBlock, constants: Collection[str]) -> str | None:
    task, block = matched.task, matched.found.block
    if block.op != task.op:
        return f"is a `{block.op}`, expected a `{task.op}`"
    source, target = (
        next(o.region for o in task.operands if o.access == access) for access in ("read", "write")
    )
    taken, given = block.inputs[0], block.outputs[0]
    if source is None or target is None or taken is None:
        return "leaves out an operand"
    expected = str(target.elem) if quantises(task) else "raw"
    if block.format != expected:
        return f"stores as `{block.format}`, expected `{expected}`"
    form = source.compression.form if source.compression is not None else None
    if form is None and taken.compression is not None:
        return _chosen_difference(matched, source, constants)
    if taken.compression != form:
        return "takes its source compressed in another way"
    if copies_elements(task) or form is not None:
        elements = (source.elem, target.elem if form is None or target.elem else source.elem)
        if (taken.elem, given.elem) != elements:
            return "moves elements of another type"
    if copies_elements(task):
        return _order_difference(matched)
    return None


def chosen_compression(operand: Operand, of_task: TaskOperand) -> bool:
    """Whether a block takes compressed what its task takes as it is."""
    region = of_task.region
    return operand.compression is not None and region is not None and region.compression is None


def _chosen_difference(
    matched: TaskBlock, source: Region, constants: Collection[str]
) -> str | None:
    """Why a copy that decompresses does not do what one of plain bytes does, but for the bytes."""
    task, block = matched.task, matched.found.block
    taken, given = block.inputs[0], block.outputs[0]
    if taken is None or source.buffer is None or source.buffer.name not in constants:
        return "decompresses its source, whose contents are not known"
    if task.op != "transfer" or source.strides is not None:
        return "decompresses a source that it cannot"
    if (taken.elem, taken.dims) != (given.elem, given.dims):
        return "decompresses elements of another type or shape than it writes"
    if copies_elements(task):
        return _order_difference(matched)
    return None if given.strides is None else "writes elements apart, expected bytes"


def _order_difference(matched: TaskBlock) -> str | None:
    """Whether a copy of elements takes them in another shape or order than its task."""
    task, block = matched.task, matched.found.block
    regions: dict[str, Region | None] = {o.access: o.region for o in task.operands}
    for access, operand in (("read", block.inputs[0]), ("write", block.outputs[0])):
        region = regions[access]
        if region is None or operand is None:
            return "leaves out an operand"
        parts = (*(region.shape or ()), *(region.strides or ()))
        lookup = lookup_at(parts, matched.grid, int(matched.rows[0]))
        dims = resolve_symbols(region.shape, lookup)
        strides = None if region.strides is None else resolve_symbols(region.strides, lookup)
        if operand.dims != dims or operand.strides != strides:
            return "moves elements in another shape or order"
    return None


def same_quant(operand: Operand, quant: object) -> bool:
    """Whether an operand carries the quantisation of its region."""
    mine = operand.quant
    if mine is None or quant is None:
        return mine is quant
    scale, zero = quant.scale.tolist(), quant.zero_point.tolist()  # type: ignore[attr-defined]
    axis, group = quant.axis, quant.group_size  # type: ignore[attr-defined]
    return (list(mine.scales), list(mine.zero_points), mine.axis, mine.group_size) == (
        scale,
        zero,
        axis,
        group,
    )


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
    if own is None or task.op not in _COPIES or copies_elements(task) or operand.access == "read":
        return own
    source = next(o for o in task.operands if o.access == "read")
    other = footprint(task, source, grid)
    if other is None or source.region is None or source.region.compression is not None:
        return own
    return Footprint(own.low, other.patterns, other.pattern_index)

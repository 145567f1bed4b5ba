"""Whether a block does what its task does, and to the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from nacre.base.diagnostics import Diagnostic
from nacre.nem.model.program import Operand as TaskOperand
from nacre.nem.model.program import Program, Task
from nacre.nem.plan.calls import call_of, lookup_at, symbolic_terms, varying_parts
from nacre.nem.plan.core_operations import primitive_of, resolve_call
from nacre.nem.plan.footprints import Footprint, copies_elements, footprint, quantises
from nacre.nem.run.machine.machine import must_be_deterministic, operation_name
from nacre.tcb.image import Operand, Placement
from nacre.tcbcheck.accesses import BlockAccess, block_accesses
from nacre.tcbcheck.correspondence import TaskBlock
from nacre.tcbcheck.rules import TCB81, TCB82

_COPIES = ("transfer", "store")


def compare_meaning(
    program: Program, matched: TaskBlock, placements: Mapping[str, Placement]
) -> Iterator[Diagnostic]:
    """What of a block differs from its task: the first thing of each kind."""
    reason = _operation_difference(matched)
    if reason is not None:
        span = program.span(matched.task.node)
        yield TCB81.at(span, f"the block of `{matched.task.name}` {reason}")
        return
    for access in block_accesses(matched.found):
        difference = _byte_difference(matched, access, placements)
        if difference is not None:
            operand = _task_operand(matched.task, access)
            span = program.span(matched.task.node if operand is None else operand.node)
            yield TCB82.at(span, f"the block of `{matched.task.name}` {difference}")


def _operation_difference(matched: TaskBlock) -> str | None:
    task, block = matched.task, matched.found.block
    row = int(matched.rows[0])
    if _varies(matched):
        return "stands for iterations of other shapes, sizes or attributes"
    reads = [o for o in task.operands if o.access == "read"]
    writes = [o for o in task.operands if o.access == "write"]
    if (len(block.inputs), len(block.outputs)) != (len(reads), len(writes)):
        found = f"{len(block.inputs)} inputs and {len(block.outputs)} outputs"
        return f"has {found}, expected {len(reads)} and {len(writes)}"
    if block.is_ordered != must_be_deterministic(task):
        return "does not keep `@deterministic`, or keeps it without need"
    if task.op in _COPIES:
        return _copy_difference(task, block.op, block.format, block.inputs, block.outputs)
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
        if not _same_quant(operand, type_.quant):
            return f"takes operand {number} by another `quant`"
    return None


def _varies(matched: TaskBlock) -> bool:
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


def _copy_difference(
    task: Task,
    op: str,
    format_: str,
    inputs: tuple[Operand | None, ...],
    outputs: tuple[Operand, ...],
) -> str | None:
    if op != task.op:
        return f"is a `{op}`, expected a `{task.op}`"
    source, target = (
        next(o.region for o in task.operands if o.access == access) for access in ("read", "write")
    )
    if source is None or target is None or inputs[0] is None:
        return "leaves out an operand"
    expected = str(target.elem) if quantises(task) else "raw"
    if format_ != expected:
        return f"stores as `{format_}`, expected `{expected}`"
    form = source.compression.form if source.compression is not None else None
    if inputs[0].compression != form:
        return "takes its source compressed in another way"
    if copies_elements(task) or form is not None:
        elements = (source.elem, target.elem if form is None or target.elem else source.elem)
        if (inputs[0].elem, outputs[0].elem) != elements:
            return "moves elements of another type"
    return None


def _same_quant(operand: Operand, quant: object) -> bool:
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


def _task_operand(task: Task, access: BlockAccess) -> TaskOperand | None:
    kind = "write" if access.is_write else "read"
    operands = [o for o in task.operands if o.access == kind]
    return operands[access.number] if access.number < len(operands) else None


def _byte_difference(
    matched: TaskBlock, access: BlockAccess, placements: Mapping[str, Placement]
) -> str | None:
    operand = _task_operand(matched.task, access)
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
        iteration = list(matched.found.iteration(row))
        found, right = int(access.address[row]), int(low[row]) + base
        return f"has {access.name} at {found:#x} in iteration {iteration}, expected {right:#x}"
    if not np.array_equal(access.pattern.runs, expected.pattern(int(matched.rows[0])).runs):
        return f"touches other bytes by {access.name} than the region of `{buffer.name}` has"
    return None


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

"""Whether a block that copies moves the elements of its task, as its task does: all but the bytes.

A copy of bytes may call them what it likes, as long as both sides call them the same: elements of
one type, one behind the other. A copy of elements has the types, shapes and strides of its regions,
and where it quantises also their scales.
"""

from __future__ import annotations

from collections.abc import Collection

from nacre.nem.model.program import Operand as TaskOperand
from nacre.nem.model.program import Region
from nacre.nem.plan.calls import lookup_at, resolve_symbols, tensor_type, varying_parts
from nacre.nem.plan.footprints import copies_elements, quantises
from nacre.tcb.image import STREAM, Operand
from nacre.tcbcheck.correspondence import TaskBlock
from nacre.tcbcheck.same_operands import same_quant, same_strides

COPIES = ("transfer", "store")


def copy_difference(matched: TaskBlock, constants: Collection[str]) -> str | None:
    """What of a copy differs from its task; `constants` are the buffers that hold some."""
    task, block = matched.task, matched.found.block
    if block.op != task.op:
        return f"is a `{block.op}`, expected a `{task.op}`"
    if block.attributes:
        return "has attributes, expected none"
    source, target = (
        next(o.region for o in task.operands if o.access == access) for access in ("read", "write")
    )
    taken, given = block.inputs[0], block.outputs[0]
    if source is None or target is None or taken is None:
        return "leaves out an operand"
    expected = str(target.elem) if quantises(task) else "raw"
    if block.format != expected:
        return f"stores as `{block.format}`, expected `{expected}`"
    if given.compression is not None:
        return "writes compressed elements"
    form = source.compression.form if source.compression is not None else None
    if form is None and taken.compression is not None:
        return _chosen_difference(matched, source, constants)
    if taken.compression != form:
        return "takes its source compressed in another way"
    if copies_elements(task):
        return element_difference(matched, source, taken) or element_difference(
            matched, target, given
        )
    if form is not None:
        return element_difference(matched, source, taken) or _plain_difference(taken, given)
    return _plain_difference(taken, given) or _quant_of_bytes(taken)


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
    if task.op != "transfer" or source.strides is not None or taken.memory == STREAM:
        return "decompresses a source that it cannot"
    if (taken.elem, taken.dims) != (given.elem, given.dims):
        return "decompresses elements of another type or shape than it writes"
    if copies_elements(task):
        target = next(o.region for o in task.operands if o.access == "write")
        if target is None:
            return "leaves out an operand"
        return element_difference(matched, source, taken) or element_difference(
            matched, target, given
        )
    return _plain_difference(taken, given) or _quant_of_bytes(taken)


def element_difference(matched: TaskBlock, region: Region, operand: Operand) -> str | None:
    """How an operand's elements differ from those of a region with a type; None: they do not."""
    lookup = lookup_at(varying_parts(matched.task), matched.grid, int(matched.rows[0]))
    type_ = tensor_type(region, lookup)
    if operand.elem != type_.elem.name:
        return f"moves elements of {operand.elem}, expected {type_.elem.name}"
    strides = None if region.strides is None else resolve_symbols(region.strides, lookup)
    if operand.dims != type_.shape or not same_strides(operand.dims, operand.strides, strides):
        return "moves elements in another number, shape or order"
    if not same_quant(operand, type_.quant):
        return "moves elements by another `quant`"
    return None


def _plain_difference(taken: Operand, given: Operand) -> str | None:
    """Bytes come out as they went in where both sides have the same elements side by side."""
    if (taken.elem, taken.dims) != (given.elem, given.dims):
        return "moves elements of another type, number or shape than it takes"
    for operand in (taken, given):
        if not same_strides(operand.dims, operand.strides, None):
            return "moves elements apart, expected bytes"
    return None if given.quant is None else "has a `quant` for bytes"


def _quant_of_bytes(taken: Operand) -> str | None:
    return None if taken.quant is None else "has a `quant` for bytes"

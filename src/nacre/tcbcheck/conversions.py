"""A store that converts as it stores: whether it gives the bits of the conversion and the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from nacre.base.diagnostics import Diagnostic
from nacre.base.elements import ELEMENT_TYPES
from nacre.nem.model.program import Program, Task
from nacre.nem.plan.calls import call_of, lookup_at, resolve_symbols, varying_parts
from nacre.nem.plan.core_operations import resolve_call
from nacre.nem.plan.footprints import copies_elements, quantises
from nacre.nem.run.machine.machine import operation_name
from nacre.tcb.image import Operand, Placement
from nacre.tcbcheck.accesses import block_accesses
from nacre.tcbcheck.correspondence import TaskBlock
from nacre.tcbcheck.meaning import byte_difference, has_strides, varies
from nacre.tcbcheck.rules import TCB81, TCB82
from nacre.tcbcheck.same_operands import same_quant


def compare_conversion(
    program: Program, matched: TaskBlock, conversion: Task, placements: Mapping[str, Placement]
) -> Iterator[Diagnostic]:
    """What of a block differs from a conversion and the store behind it: the first of each kind."""
    name = f"the block of `{conversion.name}` and `{matched.task.name}`"
    reason = _difference(matched, conversion)
    if reason is not None:
        yield TCB81.at(program.span(matched.task.node), f"{name} {reason}")
        return
    first = replace(matched, task=conversion)  # what it reads is the conversion's
    for access in block_accesses(matched.found):
        of_task = matched if access.is_write else first
        difference = byte_difference(of_task, access, placements)
        if difference is not None:
            yield TCB82.at(program.span(of_task.task.node), f"{name} {difference}")


def _difference(matched: TaskBlock, conversion: Task) -> str | None:
    block = matched.found.block
    if varies(matched) or varies(replace(matched, task=conversion)):
        return "stands for iterations of other shapes, sizes or attributes"
    if block.op != "store" or (len(block.inputs), len(block.outputs)) != (1, 1):
        return "is no store of one value"
    if block.attributes:
        return "has attributes, expected none"
    lookup = lookup_at(varying_parts(conversion), matched.grid, int(matched.rows[0]))
    call = resolve_call(operation_name(conversion), call_of(conversion, lookup, ordered=False))
    taken, given = block.inputs[0], block.outputs[0]
    if taken is None or call.inputs[0] is None:
        return "leaves out an operand"
    if block.format != call.outputs[0].elem.name or given.elem != block.format:
        return f"stores as `{block.format}`, expected `{call.outputs[0].elem.name}`"
    source = call.inputs[0]
    if (taken.elem, taken.dims) != (source.elem.name, source.shape):
        return "converts elements of another type or shape"
    if not same_quant(taken, source.quant):
        return "takes elements by another `quant`"
    if taken.compression is not None or given.compression is not None:
        return "takes or writes compressed elements"
    region = next(o.region for o in conversion.operands if o.access == "read")
    if region is None or not has_strides(taken, region, matched):
        return "takes elements in another order"
    if given.dims != call.outputs[0].shape:
        return "writes elements of another shape"
    if conversion.op == "cast":
        different = _cast_difference(call.attributes, taken, given)
    else:
        is_right = given.quant is not None and same_quant(given, call.outputs[0].quant)
        different = None if is_right else "stores by another `quant`"
    return different or _order_difference(matched, given)


def _cast_difference(
    attributes: Mapping[str, object], taken: Operand, given: Operand
) -> str | None:
    """A store without quantisation casts floats as `cast` does where it is told nothing."""
    if given.quant is not None:
        return "quantises, expected a `cast`"
    saturate = attributes.get("saturate")
    is_default = saturate is None or bool(saturate) is ELEMENT_TYPES[given.elem].is_integer
    if ELEMENT_TYPES[taken.elem].is_integer or not is_default:
        return "has another way to saturate"
    if attributes.get("rounding", "nearest_even") != "nearest_even":
        return "rounds in another way"
    return None


def _order_difference(matched: TaskBlock, given: Operand) -> str | None:
    """A store of bytes writes elements one behind the other, one of elements as its region says."""
    store = matched.task
    if quantises(store):
        return "converts twice"
    if not copies_elements(store):
        return None if given.strides is None else "writes elements apart, expected bytes"
    region = next(o.region for o in store.operands if o.access == "write")
    if region is None:
        return "leaves out an operand"
    parts = (*(region.shape or ()), *(region.strides or ()))
    lookup = lookup_at(parts, matched.grid, int(matched.rows[0]))
    strides = None if region.strides is None else resolve_symbols(region.strides, lookup)
    if (given.dims, given.strides) != (resolve_symbols(region.shape, lookup), strides):
        return "writes elements in another shape or order"
    return None

"""Zero points and scales: work that no bound counts, for a device may have it inside of something.

They are part of a product of integers, or with a cast of what changes integers to floats and back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nacre.core.constants import constant_array
from nacre.core.grouped_weights import grouped_weights_of
from nacre.core.module import CoreOperation, Module
from nacre.kernels.interface.call import Call

Calls = Mapping[int, tuple[str, Call]]


def scaling_values(module: Module, operations: Sequence[CoreOperation], calls: Calls) -> set[int]:
    """The values among a layer's operations that only shift and scale."""
    return (
        _scaling_of_products(operations)
        | _scaling_to_floats(operations, calls)
        | _scaling_to_integers(module, calls)
        | _of_grouped_weights(module, operations)
    )


def _of_grouped_weights(module: Module, operations: Sequence[CoreOperation]) -> set[int]:
    """Of weights in groups: a device may multiply by integers as they are."""
    products = (op for op in operations if op.opcode == "Linear")
    found = (grouped_weights_of(module, op.operands[1]) for op in products)
    return {op.value_id for one in found if one is not None for op in one.operations}


def _scaling_of_products(operations: Sequence[CoreOperation]) -> set[int]:
    """Of sums of whole numbers: zero points before, and the scale behind."""
    products = [op for op in operations if op.opcode == "MatMul" and op.type.dtype == "i32"]
    sums = {op.value_id for op in products}
    casts = {op.value_id for op in operations if op.opcode == "Cast" and op.operands[0] in sums}
    behind = {op.value_id for op in operations if casts & {*op.operands}}
    return behind | {operand for op in products for operand in op.operands}


def _scaling_to_floats(operations: Sequence[CoreOperation], calls: Calls) -> set[int]:
    """Integers of 8 bits that become floats: a cast, a zero point, a factor."""
    values: set[int] = set()
    for op in operations:
        call = calls[op.value_id][1]
        is_cast = op.opcode == "Cast" and (call.input(0).elem.name, op.type.dtype) == ("i8", "f16")
        is_next = any(operand in values for operand in op.operands[:1])
        if is_cast or (is_next and _is_by_number(op, call, "Sub", "Mul")):
            values.add(op.value_id)
    return values


def _scaling_to_integers(module: Module, calls: Calls) -> set[int]:
    """Floats that become integers: a factor, a zero point, and a cast as `Quantize`."""
    values: set[int] = set()
    for value in calls:
        op = module.by_id[value]
        if op.opcode != "Quantize" or not _is_cast(module, op):
            continue
        cast = module.by_id[op.operands[0]]
        before = module.by_id[cast.operands[0]] if cast.opcode == "Cast" else cast
        for wanted in ("Add", "Mul"):
            known = calls.get(before.value_id)
            if known is not None and _is_by_number(before, known[1], wanted):
                values.add(before.value_id)
                before = module.by_id[before.operands[0]]
    return values


def _is_by_number(op: CoreOperation, call: Call, *wanted: str) -> bool:
    """Whether an operation of two operands has one number as its second."""
    return op.attributes.get("op") in wanted and call.has_input(1) and call.input(1).shape == ()


def _is_cast(module: Module, op: CoreOperation) -> bool:
    """Whether a `Quantize` has steps of 1 that begin at 0."""
    scale, *zero = (constant_array(module.by_id[operand]) for operand in op.operands[1:])
    if scale is None or any(array is None for array in zero):
        return False
    return bool((scale == 1).all()) and all(not array.any() for array in zero if array is not None)

"""Constants as the kernels take them: narrow integers that the module widens stay narrow.

An imported model that is quantised holds its weights in bytes and says what they are worth by a
`Cast` to i32 and a `Sub` of the zero point. Done ahead of time that takes four times the memory,
done in every run it takes longer than the product. A kernel that prepares its constants can take
them as they are stored.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nacre.core.module import CoreOperation, Module
from nacre.core.ops import OPS
from nacre.core.values import Array
from nacre.kernels.interface.call import Constant
from nacre.kernels.registry import PRIMITIVES

_WEIGHT = 1  # the operand of a product that its kernel prepares
_FARTHEST = 1 << 16  # a zero point beyond this is none


def stored_weights(module: Module, constants: Mapping[int, Array]) -> dict[int, Constant]:
    """The values that only kernels look at which take them as they are stored.

    The operations that define them need not be computed.
    """
    weights: dict[int, Constant] = {}
    for op in module.operations:
        weight = _stored_value(op, module, constants, weights)
        if weight is not None:
            weights[op.value_id] = weight
    needed = {*module.outputs, *(state.output for state in module.states)}
    for op in reversed(module.operations):  # uses come after what they use
        if op.value_id in weights and op.value_id not in needed:
            continue
        weights.pop(op.value_id, None)
        taken = _WEIGHT if _takes_stored(op) else None
        needed.update(value for at, value in enumerate(op.operands) if at != taken)
    return weights


def _takes_stored(op: CoreOperation) -> bool:
    name = OPS[op.opcode].primitive
    return name is not None and PRIMITIVES[name].takes_known and op.type.element.is_integer


def _stored_value(
    op: CoreOperation,
    module: Module,
    constants: Mapping[int, Array],
    known: Mapping[int, Constant],
) -> Constant | None:
    """What an operation makes of bytes that are known; None where it is none of these."""
    if op.opcode == "Cast":
        array = constants.get(op.operands[0])
        if array is None or not _widens(module.by_id[op.operands[0]], op):
            return None
        return Constant(array)
    if op.opcode != "BinOp" or op.attributes["op"] != "Sub":
        return None
    wide, zero = known.get(op.operands[0]), constants.get(op.operands[1])
    if wide is None or wide.zero is not None or zero is None or not _is_zero_point(zero, op):
        return None
    return Constant(wide.stored, zero=zero)


def _widens(source: CoreOperation, op: CoreOperation) -> bool:
    """Whether a type holds every value of another, of at most 16 bits, both integers."""
    narrow, wide = source.type.element, op.type.element
    if not (narrow.is_integer and wide.is_integer and narrow.bits <= 16 < wide.bits):
        return False
    return bool(wide.lowest <= narrow.lowest and narrow.highest <= wide.highest)


def _is_zero_point(zero: Array, op: CoreOperation) -> bool:
    """Whether integers are one number, or one for each of the first axis."""
    shape = op.type.shape
    rows = (shape[0], *(1,) * (len(shape) - 1)) if shape else ()
    is_placed = zero.size == 1 or zero.shape == rows
    return is_placed and zero.ndim <= len(shape) and bool(np.all(np.abs(zero) < _FARTHEST))

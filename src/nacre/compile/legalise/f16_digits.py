"""Values that f16 holds and whose digits it loses: differences that cancel, weights that are tiny.

They are f32 by themselves: what is made of them may be f16 again.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.compile.legalise.narrowing import store_floats
from nacre.core.constants import constant_array
from nacre.core.module import CoreOperation, Module
from nacre.core.values import Array

_HALF_DIGITS = 2.0**-10  # of a constant's largest element: f16 rounds it so far where it fits
_CANCELS = 16.0  # how much smaller than what it is made of a difference is that has lost its digits
_HALF = GRAPH_TYPES["f16"]
_LEAST_NORMAL, _HIGHEST = 2.0**-14, float(_HALF.highest)
_WEIGHTS = frozenset({"Linear", "Conv"})
_MAPS = frozenset({"Exp", "Log", "Unary", "BinOp", "Clip", "Neg", "Relu", "ReluNan"})
# Where one of them is f32, so must be all that is compared with it, or steps fall apart.
_STEPS = frozenset({"Floor", "Ceil", "Round", "Trunc", "Sign"})
_SIGNED = frozenset({"Tanh", "Erf", "Sin", "Cos"})
_ABOVE_ZERO = frozenset({("Unary", "Sigmoid"), ("Unary", "Sqrt"), ("BinOp", "Pow")})
_LEAST_NUMBER = 2.0**-4  # smaller ones keep something from 0
_VIEWS = frozenset({"Reshape", "ExpandDims", "Squeeze", "Transpose", "Slice", "Broadcast"})


def badly_scaled_values(module: Module) -> frozenset[int]:
    """Products and quotients of constants that f16 has as a few digits, as 0 or not at all."""
    return frozenset(
        op.value_id
        for op in module.operations
        if op.type.dtype == "f32" and any(map(_is_held_badly, _factors(module, op)))
    )


def _factors(module: Module, op: CoreOperation) -> list[Array]:
    """The constants that an operation multiplies or divides by."""
    is_scale = op.opcode == "BinOp" and op.attributes["op"] in ("Mul", "Div")
    operands = op.operands if is_scale else op.operands[1:2] if op.opcode in _WEIGHTS else ()
    arrays = (constant_array(module.by_id[value]) for value in operands)
    return [array for array in arrays if array is not None]


def _is_held_badly(array: Array) -> bool:
    """Whether f16 rounds off more of the elements than it does of larger ones."""
    if array.dtype.kind != "f" or not array.size:
        return False
    largest = max(float(array.max()), -float(array.min()))
    if not 0 < largest < np.inf or _LEAST_NORMAL <= largest <= _HIGHEST:
        return False
    lost = np.abs(array - store_floats(array, _HALF).astype(array.dtype))
    return float(lost.max()) > _HALF_DIGITS * largest


def may_cancel(module: Module) -> bool:
    """Whether a number is added to a function of something, as in e^x - 1."""
    return any(_is_beside_number(module, op) for op in module.operations)


def cancelling_values(module: Module, largest: Mapping[int, float]) -> frozenset[int]:
    """What is far smaller than the number that is added to it, and the functions that lead there.

    Where these start from is small or f16 has it well enough; else f32 would not help.
    """
    cancelling = set[int]()
    for op in module.operations:
        if _is_beside_number(module, op) and largest.get(op.value_id):
            cancelling |= _values_to_widen(module, op, largest) or set()
    return frozenset(cancelling)


def _values_to_widen(
    module: Module, difference: CoreOperation, largest: Mapping[int, float]
) -> set[int] | None:
    """A difference and what it is made of up to where f16 has it; None where nothing helps."""
    most = _CANCELS * largest[difference.value_id]
    taken, waiting = set[int](), list(difference.operands)
    while waiting:
        op = module.by_id[waiting.pop()]
        if op.value_id in taken or largest.get(op.value_id, 0.0) <= most:
            continue  # constants have not been seen
        if not _is_map(op):
            return None
        taken.add(op.value_id)
        waiting += op.operands
    return taken | {difference.value_id} if taken else None


def _is_beside_number(module: Module, op: CoreOperation) -> bool:
    """Whether a number is taken from a function that can come near it."""
    if op.opcode != "BinOp" or op.attributes["op"] not in ("Add", "Sub") or op.type.dtype != "f32":
        return False
    for value, other in (op.operands, op.operands[::-1]):
        number = constant_array(module.by_id[other])
        if number is not None and number.size and np.abs(number).max() >= _LEAST_NUMBER:
            is_summand = op.attributes["op"] == "Add" and bool((number > 0).all())
            return _is_function(module, value, is_added=is_summand)
    return False


def _is_function(module: Module, value: int, *, is_added: bool) -> bool:
    """Whether a value is a function that can cancel a number, which is added to it or taken off."""
    op = module.by_id[value]
    while op.opcode in _VIEWS:
        op = module.by_id[op.operands[0]]
    kind = op.attributes.get("op")
    if op.opcode == "Unary" and kind in _SIGNED:
        return True
    is_above_zero = op.opcode == "Exp" or (op.opcode, kind) in _ABOVE_ZERO
    return is_above_zero and not is_added


def _is_map(op: CoreOperation) -> bool:
    return op.opcode in _MAPS | _VIEWS and op.attributes.get("op") not in _STEPS

"""What is done to the integers of a quantised module: what they stand for, and which are steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nacre.compile.quantise.prequantised.imported_scales import SHIFTS
from nacre.core.constants import constant_array
from nacre.core.module import CoreOperation, Module
from nacre.core.ops import OPS

Users = Mapping[int, Sequence[CoreOperation]]

# What may be done to stored integers without a look at what they stand for.
MOVES = frozenset({
    "Reshape", "Transpose", "ExpandDims", "Squeeze", "Slice", "Concat", "Broadcast", "Tile",
    "Flip", "MaxPool", "Resize", "Gather", "GatherAxis", "DepthToSpace", "SpaceToDepth", "Index",
})  # fmt: skip
PRODUCTS = ("MatMul", "Linear", "Conv")  # also of integers of 32 bits
# The scale and zero point that a fused operation gives its operands.
_SIDES: Mapping[str, Sequence[tuple[str, str]]] = {
    "QConv": (("x_scale", "x_zero"), ("w_scales", "w_zeros")),
    "QLinear": (("x_scale", "x_zero"), ("w_scales", "w_zeros")),
    "QBinOp": (("a_scale", "a_zero"), ("b_scale", "b_zero")),
    "QPool": (("x_scale", "x_zero"),),
}
_STEPS = frozenset({"Quantize", "Dequantize", "QBinOp", "BinOp", "Reshape"})
_MOST_PRODUCTS = 2  # after the sum: by what was given, and by a half


def users_of(module: Module) -> Users:
    """The operations that use each value."""
    found: dict[int, list[CoreOperation]] = {}
    for op in module.operations:
        for operand in dict.fromkeys(op.operands):
            found.setdefault(operand, []).append(op)
    return found


def known_scale_and_zero(module: Module, op: CoreOperation) -> tuple[float, int] | None:
    """The one scale and zero point among the operands of an operation, where they are known."""
    scale = constant_array(module.by_id[op.operands[1]])
    zero = np.zeros((), np.int64)
    if len(op.operands) > 2:
        known_zero = constant_array(module.by_id[op.operands[2]])
        if known_zero is None:
            return None
        zero = known_zero
    if scale is None or scale.size != 1 or zero.size != 1:
        return None
    return float(scale.astype(np.float32).flat[0]), int(zero.flat[0])


def first_scale_and_zero(module: Module, users: Users, value: int) -> tuple[float, int] | None:
    """The scale and zero point under which stored integers are first read."""
    for op in users.get(value, ()):
        found = _scale_and_zero_read_by(module, users, op, value)
        if found is not None:
            return found
    return None


def _scale_and_zero_read_by(
    module: Module, users: Users, op: CoreOperation, value: int
) -> tuple[float, int] | None:  # fmt: skip
    if op.opcode in MOVES or op.opcode == "Pad":
        is_data = op.operands[0] == value or op.opcode == "Concat"
        return first_scale_and_zero(module, users, op.value_id) if is_data else None
    if op.opcode == "Dequantize" and op.operands[0] == value:
        return known_scale_and_zero(module, op)
    if op.opcode in _SIDES and op.operands.index(value) < len(_SIDES[op.opcode]):
        given = OPS[op.opcode].with_defaults(op.attributes)
        scale, zero = (given[name] for name in _SIDES[op.opcode][op.operands.index(value)])
        scales, zeros = np.ravel(scale), np.ravel(zero if np.size(zero) else 0)
        is_one = scales.size == zeros.size == 1
        return (float(np.float32(scales[0])), int(zeros[0])) if is_one else None
    if op.opcode == "Cast" and op.attributes["to"] == "i32":
        return _scale_and_zero(module, users, op)
    if op.opcode == "Cast" and op.attributes["to"] in ("f32", *SHIFTS):
        return first_scale_and_zero(module, users, op.value_id)  # moved as floats, and back
    return None


def multiplies_stored_integers(module: Module, users: Users) -> bool:
    """Whether a module computes floats by products of stored integers."""
    bytes_ = (
        op
        for op in module.operations
        if op.opcode == "Cast"
        and op.attributes["to"] == "i32"
        and module.by_id[op.operands[0]].type.dtype in SHIFTS
    )
    return any(_scale_and_zero(module, users, op) is not None for op in bytes_)


def _scale_and_zero(module: Module, users: Users, op: CoreOperation) -> tuple[float, int] | None:
    """Integers that a product of integers takes: whole numbers, less a zero point.

    None where the model wants to see the sums themselves, which floats cannot be.
    """
    if not _become_floats(module, users, op.value_id):
        return None
    for user in users.get(op.value_id, ()):
        if user.opcode in PRODUCTS:
            return 1.0, 0
        if user.opcode == "BinOp" and user.attributes["op"] == "Sub":
            array = constant_array(module.by_id[user.operands[1]])
            if array is not None and array.size == 1:
                return 1.0, int(array.flat[0])
    return None


def _become_floats(module: Module, users: Users, value: int) -> bool:
    """Whether integers of 32 bits are only counted with, until they are cast to floats."""
    pending, seen = [value], {value}
    while pending:
        at = pending.pop()
        if at in module.outputs or not users.get(at):
            return False
        for user in users[at]:
            if user.opcode == "Cast" and user.attributes["to"] == "f32":
                continue
            if user.opcode not in (*PRODUCTS, *MOVES, "BinOp", "Sum"):
                return False
            if user.value_id not in seen:
                seen.add(user.value_id)
                pending.append(user.value_id)
    return True


def inside_gelu(module: Module, users: Users) -> frozenset[int]:
    """Stored integers between the operations of `x * (1 + erf(x / sqrt(2))) / 2`.

    The device has that as one function, and no `erf`. Steps inside are not rounded then.
    """
    inside: set[int] = set()
    for op in module.operations:
        if op.opcode == "Unary" and op.attributes["op"] == "Erf":
            inside |= _steps_after(module, users, op)
    return frozenset(inside)


def _steps_after(module: Module, users: Users, op: CoreOperation) -> set[int]:
    """Integers on the way from `erf` to the last product; none where it is another way."""
    passed: list[CoreOperation] = []
    last, products, has_sum, at = 0, 0, False, op
    while len(users.get(at.value_id, ())) == 1 and at.value_id not in module.outputs:
        at = users[at.value_id][0]
        if at.opcode not in _STEPS:
            break
        word = str(at.attributes.get("op", ""))
        if word == "Add" and not has_sum and not products:
            has_sum = True
        elif word == "Mul" and has_sum and products < _MOST_PRODUCTS:
            products += 1
            last = len(passed)
        elif word:
            break
        passed.append(at)
    stored = ("Quantize", "QBinOp")
    return {step.value_id for step in passed[:last] if products and step.opcode in stored}

"""The float form of each operation of a quantised module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from nacre.compile.quantise.prequantised.imported_scales import SHIFTS
from nacre.compile.quantise.prequantised.uses import (
    MOVES,
    PRODUCTS,
    first_scale_and_zero,
    known_scale_and_zero,
)
from nacre.compile.quantise.prequantised.walk import (
    WIDE,
    ScaledNumbers,
    StoredReals,
    Walk,
    dequantise,
)
from nacre.core.module import CoreOperation
from nacre.core.ops import OPS
from nacre.core.values import Array

_POOLS: Mapping[str, str] = {"Max": "MaxPool", "Avg": "AvgPool"}
_GATHERS = frozenset({"Gather", "GatherAxis"})
_NEARLY_HALF = 0.5 - 2.0**-6
_WHOLE = ("i32", "f32")  # types in which stored integers are numbers


def move(walk: Walk, op: CoreOperation) -> bool:
    """Stored integers that are only moved: the floats are."""
    if op.opcode not in MOVES or not op.operands:
        return False
    numbers = walk.numbers.get(op.operands[0])
    if numbers is not None and len(op.operands) == 1:
        moved = walk.builder.add(op.opcode, numbers.value, **op.attributes)
        walk.numbers[op.value_id] = replace(numbers, value=moved)
        return True
    count = len(op.operands) if op.opcode == "Concat" else 1
    data, others = op.operands[:count], op.operands[count:]
    stored = next((walk.stored[o] for o in data if o in walk.stored), None)
    if stored is None and op.opcode in _GATHERS:
        return _table(walk, op)
    if stored is None or not all(_has_same_scale(walk, o, stored) for o in data):
        return False
    values = [walk.reals(o, stored.scale, stored.zero) for o in data]
    operands = [value for value in values if value is not None]
    if len(operands) < count:
        return False
    moved = walk.builder.add(op.opcode, *operands, *map(walk.value, others), **op.attributes)
    walk.record_stored(op, replace(stored, value=moved))
    return True


def _has_same_scale(walk: Walk, source: int, reals: StoredReals) -> bool:
    """Whether a part is constant, or stands for its floats as the others do."""
    own = walk.stored.get(source)
    if own is None:
        return walk.constant(source) is not None
    return replace(own, value=reals.value) == reals


def _table(walk: Walk, op: CoreOperation) -> bool:
    """Rows of a constant table of stored integers."""
    table = walk.constant(op.operands[0])
    scale_and_zero = first_scale_and_zero(walk.module, walk.users, op.value_id)
    if table is None or scale_and_zero is None or op.type.dtype not in SHIFTS:
        return False
    reals = StoredReals(-1, *scale_and_zero, op.type.dtype)
    if reals.affine is None:
        return False
    rows = walk.builder.constant(
        dequantise(table, np.float32(scale_and_zero[0]), np.int64(scale_and_zero[1])), "f32"
    )
    others = [walk.value(operand) for operand in op.operands[1:]]
    picked = walk.builder.add(op.opcode, rows, *others, **op.attributes)
    walk.record_stored(op, replace(reals, value=picked))
    return True


def _pad(walk: Walk, op: CoreOperation) -> bool:
    """Padding of stored integers: what surrounds them stands for a real too."""
    stored_reals = walk.stored.get(op.operands[0])
    if stored_reals is None or len(op.operands) > 1 or np.isnan(stored_reals.scale):
        return False
    stored = OPS["Pad"].with_defaults(op.attributes)["value"]
    given = {**op.attributes, "value": (float(stored) - stored_reals.zero) * stored_reals.scale}
    padded = walk.builder.add("Pad", stored_reals.value, **given)
    walk.record_stored(op, replace(stored_reals, value=padded))
    return True


def _quantize(walk: Walk, op: CoreOperation) -> bool:
    scale_and_zero, to = known_scale_and_zero(walk.module, op), str(op.attributes["to"])
    if to not in (*SHIFTS, *WIDE) or walk.module.by_id[op.operands[0]].type.element.kind != "float":
        return False
    if scale_and_zero is None:
        if walk.constant(op.operands[1]) is not None or to in WIDE:
            return False  # a scale for each channel: the operation stays
        walk.notes.append("scales that the model computes at run time are taken from calibration")
        source = walk.cast(walk.value(op.operands[0]))
        walk.stored[op.value_id] = StoredReals(source, float("nan"), 0, to)
        return True
    scale, zero = scale_and_zero
    numbers = walk.numbers.get(op.operands[0])
    if numbers is not None and not numbers.shift:
        walk.record_stored(op, StoredReals(numbers.value, numbers.scale * scale, zero, to))
    else:
        walk.record_stored(op, StoredReals(walk.cast(walk.value(op.operands[0])), scale, zero, to))
    return True


def _dequantize(walk: Walk, op: CoreOperation) -> bool:
    x, scale = op.operands[0], walk.constant(op.operands[1])
    stored = walk.stored.get(x)
    if scale is None and stored is not None and np.isnan(stored.scale):
        walk.ids[op.value_id] = walk.cast(stored.value, op.type.dtype)
        return True
    scale_and_zero, array = known_scale_and_zero(walk.module, op), walk.constant(x)
    if array is not None and scale is not None and not op.attributes.get("block", 0):
        constant = _dequantized_constant(walk, op, array, scale)
        if constant is not None:
            known = walk.builder.constant(constant, "f32")
            walk.ids[op.value_id] = walk.cast(known, op.type.dtype)
            return True
    value = None if scale_and_zero is None else walk.reals(x, *scale_and_zero)
    if value is not None:
        walk.ids[op.value_id] = walk.cast(value, op.type.dtype)
    return value is not None


def _dequantized_constant(
    walk: Walk, op: CoreOperation, array: Array, scale: Array
) -> Array | None:  # fmt: skip
    zero = walk.constant(op.operands[2]) if len(op.operands) > 2 else np.zeros((), np.int64)
    if zero is None or op.type.element.dtype != scale.dtype:
        return None
    scale = scale.astype(np.float32)
    axis = OPS["Dequantize"].with_defaults(op.attributes)["axis"]
    shape = [1] * array.ndim
    if scale.size > 1:
        shape[axis] = scale.size
    wide = np.broadcast_to(zero.astype(np.int64).ravel(), (scale.size,))
    return dequantise(array, scale.reshape(shape), wide.reshape(shape))


def _position_of_largest(walk: Walk, op: CoreOperation) -> bool:
    """Where the largest of stored integers is, there is the largest of what they stand for."""
    found = walk.stored.get(op.operands[0])
    if found is None:
        return False
    others = [walk.value(operand) for operand in op.operands[1:]]
    walk.ids[op.value_id] = walk.builder.add(op.opcode, found.value, *others, **op.attributes)
    return True


# Integers that the model counts with


def _cast(walk: Walk, op: CoreOperation) -> bool:
    """Stored integers as wider ones, and those as floats."""
    source, to = op.operands[0], str(op.attributes["to"])
    stored, numbers = walk.stored.get(source), walk.numbers.get(source)
    if numbers is not None and to in SHIFTS and numbers.shift.is_integer():
        # A cast cuts off, which is to round what is nearly half a step lower.
        lower = _NEARLY_HALF * numbers.scale if to == "u8" else 0.0
        value = walk.plus(numbers.value, -lower)
        walk.record_stored(op, StoredReals(value, numbers.scale, int(numbers.shift), to))
        return True
    if stored is not None and to in _WHOLE and not np.isnan(stored.scale):
        numbers = ScaledNumbers(stored.value, stored.scale, float(stored.zero))
    elif numbers is None or to != "f32":
        return False
    walk.numbers[op.value_id] = numbers
    return True


def _combine(walk: Walk, op: CoreOperation) -> bool:
    """Numbers with a constant: a zero point taken off, a bias added, a scale multiplied by."""
    word, (left, right) = str(op.attributes["op"]), op.operands
    if word in ("Add", "Mul") and left not in walk.numbers:
        left, right = right, left
    numbers, array = walk.numbers.get(left), walk.constant(right)
    if numbers is None or array is None or word not in ("Add", "Sub", "Mul", "Div"):
        return False
    reals = array.astype(np.float64)
    if word in ("Add", "Sub"):
        return _add(walk, op, numbers, reals if word == "Add" else -reals)
    reals = 1.0 / reals if word == "Div" and reals.all() else reals
    is_number = op.type.dtype == "f32" and not numbers.shift and bool((reals > 0).all())
    if not is_number or (word == "Div" and not array.all()):
        return False
    if reals.size == 1 and op.type.shape == walk.module.by_id[left].type.shape:
        scale = numbers.scale / float(reals.flat[0])
        walk.numbers[op.value_id] = replace(numbers, scale=scale)
        return True
    factors = walk.builder.constant((reals / numbers.scale).astype(np.float32), "f32")
    walk.ids[op.value_id] = walk.builder.add("BinOp", numbers.value, factors, op="Mul")
    return True


def _add(walk: Walk, op: CoreOperation, numbers: ScaledNumbers, reals: Array) -> bool:
    if reals.size == 1 and op.type.shape == walk.builder.type_of(numbers.value).shape:
        shift = numbers.shift + float(reals.flat[0])
        walk.numbers[op.value_id] = replace(numbers, shift=shift)
        return True
    addend = walk.builder.constant((reals * numbers.scale).astype(np.float32), "f32")
    total = walk.builder.add("BinOp", numbers.value, addend, op="Add")
    walk.numbers[op.value_id] = replace(numbers, value=total)
    return True


def _multiply(walk: Walk, op: CoreOperation) -> bool:
    """Sums, and products of matrices and windows, of numbers without a zero point."""
    sides = [_number(walk, operand) for operand in op.operands]
    unshifted = [side for side in sides if side is not None and not side.shift]
    is_any = any(operand in walk.numbers for operand in op.operands)
    if len(unshifted) < len(sides) or not is_any or len(unshifted) > 2:
        return False
    values = [side.value for side in unshifted]
    product = walk.builder.add(op.opcode, *values, **op.attributes)
    scale = float(np.prod([side.scale for side in unshifted]))
    walk.numbers[op.value_id] = ScaledNumbers(product, scale)
    return True


def _number(walk: Walk, source: int) -> ScaledNumbers | None:
    array = walk.constant(source)
    if array is None:
        return walk.numbers.get(source)
    return ScaledNumbers(walk.builder.constant(array.astype(np.float32), "f32"), 1.0)


# Fused operations


def _product(walk: Walk, op: CoreOperation) -> bool:
    """`QConv`, `QLinear`: constant weights, or weights of one scale."""
    given = OPS[op.opcode].with_defaults(op.attributes)
    x = walk.reals(op.operands[0], given["x_scale"], given["x_zero"])
    scales = np.array(given["w_scales"], np.float32)
    zeros = np.array(given["w_zeros"] or (0,), np.int64)
    array = walk.constant(op.operands[1])
    is_first = op.opcode == "QLinear" or given["layout"] == "NCHW"
    if array is not None:
        shape = [1] * array.ndim
        shape[0 if is_first else -1] = -1
        w: int | None = walk.builder.constant(
            dequantise(array, scales.reshape(shape), zeros.reshape(shape)), "f32"
        )
    else:
        is_one = scales.size == 1
        w = walk.reals(op.operands[1], float(scales[0]), int(zeros[0])) if is_one else None
    bias = walk.constant(op.operands[2]) if len(op.operands) > 2 else None
    if x is None or w is None or (len(op.operands) > 2 and bias is None):
        return False
    operands = [x, w]
    if bias is not None:
        units = np.float32(given["x_scale"]) * scales
        operands.append(walk.builder.constant((bias * units.astype(np.float64)), "f32"))
    return _add_unfused(walk, op, op.opcode[1:], operands)


def _add_unfused(walk: Walk, op: CoreOperation, opcode: str, operands: list[int]) -> bool:
    """The float operation behind a fused one."""
    given = OPS[op.opcode].with_defaults(op.attributes)
    own = {a.name for a in OPS[opcode].attributes}
    kept = {name: v for name, v in op.attributes.items() if name in own}
    result = walk.builder.add(opcode, *operands, **kept)
    scale = float(np.float32(given["y_scale"]))
    walk.record_stored(op, StoredReals(result, scale, given["y_zero"], str(given["to"])))
    return True


def _binary(walk: Walk, op: CoreOperation) -> bool:
    given = OPS["QBinOp"].with_defaults(op.attributes)
    sides = [
        walk.reals(value, given[f"{side}_scale"], given[f"{side}_zero"])
        for value, side in zip(op.operands, "ab", strict=True)
    ]
    operands = [side for side in sides if side is not None]
    return len(operands) == 2 and _add_unfused(walk, op, "BinOp", operands)


def _pool(walk: Walk, op: CoreOperation) -> bool:
    given = OPS["QPool"].with_defaults(op.attributes)
    x = walk.reals(op.operands[0], given["x_scale"], given["x_zero"])
    return x is not None and _add_unfused(walk, op, _POOLS[str(given["op"])], [x])


FORMS: Mapping[str, Callable[[Walk, CoreOperation], bool]] = {
    "Quantize": _quantize,
    "Dequantize": _dequantize,
    "QConv": _product,
    "QLinear": _product,
    "QBinOp": _binary,
    "QPool": _pool,
    "Pad": _pad,
    **dict.fromkeys(("ArgMax", "ArgMin", "TopKIndices"), _position_of_largest),
    "Cast": _cast,
    "BinOp": _combine,
    "Sum": _multiply,
    **dict.fromkeys(PRODUCTS, _multiply),
}

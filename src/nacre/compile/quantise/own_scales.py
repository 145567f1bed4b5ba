"""Models that come quantised: as float models again, with the scales that they brought.

Every tensor of stored integers has a float tensor that it stands for. The float model computes
those. Integers have ends, so each is held between two bounds by a `Clip`; those bounds say which
scale it had, and the quantiser takes that instead of looking for one. What other stages do to a
module does not lose them. Data in u8 becomes i8, which moves zero points by 128.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from nacre.compile.quantise.affine import Affine
from nacre.core.builder import Builder
from nacre.core.evaluation_plan import constant_array
from nacre.core.module import CoreOperation, Labels, Module
from nacre.core.ops import OPS
from nacre.core.values import Array

_SHIFTS: Mapping[str, int] = {"i8": 0, "u8": -128}  # to i8
_POOLS: Mapping[str, str] = {"Max": "MaxPool", "Avg": "AvgPool"}
# What may be done to stored integers without a look at what they stand for.
_MOVES = frozenset({
    "Reshape", "Transpose", "ExpandDims", "Squeeze", "Slice", "Concat", "Broadcast", "Tile",
    "Flip", "MaxPool", "Resize", "Gather", "GatherAxis", "DepthToSpace", "SpaceToDepth",
})  # fmt: skip
_QUANTISED = frozenset({"Quantize", "Dequantize", "QConv", "QLinear", "QBinOp", "QPool"})

Given = Mapping[tuple[float, float], Affine]


@dataclass(frozen=True, eq=False)
class Plain:
    """A float model, and the scale for each pair of bounds that holds a value of it."""

    module: Module
    given: Given = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Reals:
    """Stored integers: the float value that they stand for, and how."""

    value: int
    scale: float
    zero: int
    dtype: str

    @property
    def affine(self) -> Affine:
        return Affine(self.scale, self.zero + _SHIFTS[self.dtype])


@dataclass(frozen=True)
class _Counts:
    """Integers of 32 bits that are a float value over a scale, plus a number."""

    value: int
    scale: float
    shift: int


def unquantised(module: Module) -> Plain:
    """The float model behind a quantised one; a model without quantised operations as it is."""
    if not any(op.opcode in _QUANTISED for op in module.operations):
        return Plain(module)
    walk = _Walk(module)
    for op in module.operations:
        walk.take(op)
    states = [(s.name, walk.value(s.output), walk.value(s.initial)) for s in module.states]
    for name, output, initial in states:
        walk.builder.state(name, output, initial)
    made = walk.builder.module(*(walk.value(value) for value in module.outputs))
    own = module.labels or Labels()
    nodes = {walk.ids[value]: name for value, name in own.nodes.items() if value in walk.ids}
    labels = Labels(own.outputs, nodes)
    return Plain(replace(made, labels=labels), walk.given, tuple(dict.fromkeys(walk.notes)))


class _Walk:
    """Goes through a quantised module and builds the float one."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.builder = Builder()
        self.ids: dict[int, int] = {}
        self.stored: dict[int, _Reals] = {}
        self.counts: dict[int, _Counts] = {}
        self.given: dict[tuple[float, float], Affine] = {}
        self.notes: list[str] = []

    def take(self, op: CoreOperation) -> None:
        """One operation of the quantised module."""
        if op.opcode == "Input":
            name = str(op.attributes["name"])
            self.ids[op.value_id] = self.builder.input(name, op.type.dtype, op.type.shape)
            return
        if constant_array(op) is not None:
            return  # made where it is used
        form = _FORMS.get(op.opcode)
        if form is not None and form(self, op):
            return
        if self._moves(op):
            return
        operands = tuple(self.value(operand) for operand in op.operands)
        self.ids[op.value_id] = self.builder.copy(op, operands)

    def _moves(self, op: CoreOperation) -> bool:
        """Stored integers that are only moved: the floats are."""
        if op.opcode not in _MOVES or not op.operands or op.operands[0] not in self.stored:
            return False
        first = self.stored[op.operands[0]]
        operands = []
        for operand in op.operands:
            found = self.stored.get(operand)
            if found is not None and replace(found, value=first.value) != first:
                return False
            operands.append(self.value(operand) if found is None else found.value)
        made = self.builder.add(op.opcode, *operands, **op.attributes)
        self.remember(op, replace(first, value=made))
        return True

    def value(self, source: int) -> int:
        """A value of the module itself; stored integers are made from their floats."""
        if source in self.ids:
            return self.ids[source]
        op = self.module.by_id[source]
        array = constant_array(op)
        if array is not None:
            made = self.builder.constant(array, op.type.dtype)
        elif source in self.counts:  # after all as it was
            made = self.builder.copy(op, tuple(self.value(operand) for operand in op.operands))
        else:
            found = self.stored[source]
            scale = self.builder.constant(np.float32(found.scale), "f32")
            zero = self.builder.constant(np.array(found.zero), found.dtype)
            made = self.builder.add("Quantize", found.value, scale, zero, to=found.dtype)
        self.ids[source] = made
        return made

    def constant(self, source: int) -> Array | None:
        """The elements of a constant; None where a value is none."""
        return constant_array(self.module.by_id[source])

    def remember(self, op: CoreOperation, reals: _Reals) -> None:
        """A result in stored integers: the floats end where those do."""
        if reals.dtype in _SHIFTS and reals.affine.is_sound:
            affine = reals.affine
            self.given[affine.low, affine.high] = affine
            held = self.builder.add("Clip", reals.value, min=affine.low, max=affine.high)
            reals = replace(reals, value=held)
        self.stored[op.value_id] = reals

    def reals(self, source: int, scale: float, zero: int) -> int | None:
        """The floats for stored integers under a scale; None where that is another than theirs."""
        array = self.constant(source)
        if array is not None:
            reals = _reals(array, np.float32(scale), np.int64(zero))
            return self.builder.constant(reals, "f32")
        found = self.stored.get(source)
        if found is None or found.zero != zero or np.isnan(found.scale):
            return None
        factor = float(np.float32(scale)) / found.scale
        return found.value if factor == 1.0 else self.times(found.value, factor)

    def times(self, value: int, factor: float) -> int:
        """A float value times a number."""
        return self.builder.add("BinOp", value, self.builder.constant(np.float32(factor)), op="Mul")


def _reals(array: Array, scale: Array | np.float32, zero: Array | np.int64) -> Array:
    """`(stored - zero) * scale` in f32, the difference exact."""
    steps = (array.astype(np.int64) - zero).astype(np.float32)
    return np.asarray(steps * scale)


def _single(walk: _Walk, op: CoreOperation) -> tuple[float, int] | None:
    """The one scale and zero point among the operands of an operation, where they are known."""
    scale = walk.constant(op.operands[1])
    zero = walk.constant(op.operands[2]) if len(op.operands) > 2 else np.zeros((), np.int64)
    if scale is None or zero is None or scale.size != 1 or zero.size != 1:
        return None
    return float(scale.astype(np.float32).flat[0]), int(zero.flat[0])


def _quantize(walk: _Walk, op: CoreOperation) -> bool:
    found, to = _single(walk, op), str(op.attributes["to"])
    if to not in _SHIFTS or walk.module.by_id[op.operands[0]].type.dtype != "f32":
        return False
    value = walk.value(op.operands[0])
    if found is None:
        if walk.constant(op.operands[1]) is not None:
            return False  # a scale for each channel: the operation stays
        walk.notes.append("scales that the model computes at run time are taken from calibration")
        walk.stored[op.value_id] = _Reals(value, float("nan"), 0, to)
        return True
    walk.remember(op, _Reals(value, *found, to))
    return True


def _dequantize(walk: _Walk, op: CoreOperation) -> bool:
    x, scale = op.operands[0], walk.constant(op.operands[1])
    stored = walk.stored.get(x)
    if scale is None and stored is not None and np.isnan(stored.scale):
        walk.ids[op.value_id] = stored.value
        return True
    found, array = _single(walk, op), walk.constant(x)
    if array is not None and scale is not None and not op.attributes.get("block", 0):
        made = _dequantized_constant(walk, op, array, scale)
        if made is not None:
            walk.ids[op.value_id] = walk.builder.constant(made, "f32")
            return True
    if found is None or op.type.dtype != "f32":
        return False
    value = walk.reals(x, *found)
    if value is not None:
        walk.ids[op.value_id] = value
    return value is not None


def _dequantized_constant(
    walk: _Walk, op: CoreOperation, array: Array, scale: Array
) -> Array | None:  # fmt: skip
    zero = walk.constant(op.operands[2]) if len(op.operands) > 2 else np.zeros((), np.int64)
    if zero is None or op.type.dtype != "f32" or op.type.element.dtype != scale.dtype:
        return None
    axis = OPS["Dequantize"].filled(op.attributes)["axis"]
    shape = [1] * array.ndim
    if scale.size > 1:
        shape[axis] = scale.size
    wide = np.broadcast_to(zero.astype(np.int64).ravel(), (scale.size,))
    return _reals(array, scale.reshape(shape), wide.reshape(shape))


def _cast(walk: _Walk, op: CoreOperation) -> bool:
    """Stored integers as wider ones, and those as floats."""
    source, to = op.operands[0], op.attributes["to"]
    found, counts = walk.stored.get(source), walk.counts.get(source)
    if found is not None and to == "i32" and not np.isnan(found.scale):
        walk.counts[op.value_id] = _Counts(found.value, found.scale, found.zero)
        return True
    if counts is None or to != "f32" or counts.shift:
        return False
    walk.ids[op.value_id] = walk.times(counts.value, 1.0 / counts.scale)
    return True


def _less(walk: _Walk, op: CoreOperation) -> bool:
    """A zero point taken off."""
    counts, array = walk.counts.get(op.operands[0]), walk.constant(op.operands[-1])
    if counts is None or op.attributes["op"] != "Sub" or array is None or array.size != 1:
        return False
    walk.counts[op.value_id] = replace(counts, shift=counts.shift - int(array.flat[0]))
    return True


def _sum(walk: _Walk, op: CoreOperation) -> bool:
    counts = walk.counts.get(op.operands[0])
    if counts is None or counts.shift:
        return False
    made = walk.builder.add("Sum", counts.value, **op.attributes)
    walk.counts[op.value_id] = replace(counts, value=made)
    return True


def _product(walk: _Walk, op: CoreOperation) -> bool:
    """`QConv`, `QLinear`: constant weights, or weights of one scale."""
    given = OPS[op.opcode].filled(op.attributes)
    x = walk.reals(op.operands[0], given["x_scale"], given["x_zero"])
    scales = np.array(given["w_scales"], np.float32)
    zeros = np.array(given["w_zeros"] or (0,), np.int64)
    array = walk.constant(op.operands[1])
    is_first = op.opcode == "QLinear" or given["layout"] == "NCHW"
    if array is not None:
        shape = [1] * array.ndim
        shape[0 if is_first else -1] = -1
        w: int | None = walk.builder.constant(
            _reals(array, scales.reshape(shape), zeros.reshape(shape)), "f32"
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
    return _stored_result(walk, op, op.opcode[1:], operands)


def _stored_result(walk: _Walk, op: CoreOperation, opcode: str, operands: list[int]) -> bool:
    """The float operation behind a fused one."""
    given = OPS[op.opcode].filled(op.attributes)
    own = {a.name for a in OPS[opcode].attributes}
    kept = {name: v for name, v in op.attributes.items() if name in own}
    made = walk.builder.add(opcode, *operands, **kept)
    scale = float(np.float32(given["y_scale"]))
    walk.remember(op, _Reals(made, scale, given["y_zero"], str(given["to"])))
    return True


def _binary(walk: _Walk, op: CoreOperation) -> bool:
    given = OPS["QBinOp"].filled(op.attributes)
    sides = [
        walk.reals(value, given[f"{side}_scale"], given[f"{side}_zero"])
        for value, side in zip(op.operands, "ab", strict=True)
    ]
    operands = [side for side in sides if side is not None]
    return len(operands) == 2 and _stored_result(walk, op, "BinOp", operands)


def _pool(walk: _Walk, op: CoreOperation) -> bool:
    given = OPS["QPool"].filled(op.attributes)
    x = walk.reals(op.operands[0], given["x_scale"], given["x_zero"])
    return x is not None and _stored_result(walk, op, _POOLS[str(given["op"])], [x])


_FORMS: Mapping[str, Callable[[_Walk, CoreOperation], bool]] = {
    "Quantize": _quantize,
    "Dequantize": _dequantize,
    "QConv": _product,
    "QLinear": _product,
    "QBinOp": _binary,
    "QPool": _pool,
    "Cast": _cast,
    "BinOp": _less,
    "Sum": _sum,
}

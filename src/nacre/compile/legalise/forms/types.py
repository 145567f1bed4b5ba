"""Element types: those of the graph narrowed to those of the device.

Forms are found in f32, so that weights are rounded once; the precision comes last. 64-bit integers
become 32-bit ones: shapes and indices fit, and what does not is held at the end and noted. 4-bit
integers lie in bytes, one in each: the host need not pack them, and results are held in 4 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.compile.legalise.narrowing import guarding_constants, narrow, narrow_bound
from nacre.core.builder import Builder
from nacre.core.constants import constant_array
from nacre.core.module import CoreOperation, Labels, Module
from nacre.core.ops import OPS
from nacre.core.values import Array

Note = Callable[[str], None]
Named = Callable[[int], str]  # an operation of the source, by its number, for a message
Types = Mapping[str, str]
# Before the forms: one type of floats, one of indices, none that is packed.
NARROW: Types = MappingProxyType(
    {"f64": "f32", "f16": "f32", "bf16": "f32", "i64": "i32", "i4": "i8", "u4": "u8"}
)
_TYPE_ATTRIBUTES = ("to", "dtype")
# Results of one type whatever the operands are; a cast behind them narrows it.
FIXED_RESULTS = frozenset({"ArgMax", "ArgMin", "TopKIndices"})
# Reals that stand for integers are f32 on both sides: the device's scales are literals of f32.
_QUANTISING = frozenset({"Quantize", "Dequantize", "DynamicQuantizeScale", "DynamicQuantizeZero"})
# What is finite whatever it is made of; views of it are, too.
_BOUNDED = frozenset({"Softmax", "HardSigmoid"})
_BOUNDED_UNARY = frozenset({("Unary", "Sigmoid"), ("Unary", "Tanh"), ("Unary", "Erf")})
_MOVING = frozenset({"Reshape", "Transpose", "Slice", "ExpandDims", "Squeeze", "Broadcast"})
_SHORT = 8  # bits of integers that every type of floats holds
# Of integers of 4 bits: results that are elements of an operand, and those that stop at the ends
# of the type. Whatever else makes them is arithmetic, which is right modulo 16 in bytes too.
_PICKING = _MOVING | {
    "Concat", "Gather", "GatherAxis", "GatherElements", "GatherNd", "Index", "DynamicSlice",
    "DynamicUpdate", "DepthToSpace", "SpaceToDepth", "Where", "Flip", "Tile", "Trilu", "Clip",
    "Relu", "ReluNan", "TopKValues", "ScatterRows",
}  # fmt: skip
_SATURATING = frozenset({"Quantize", "MaxPool", "Pad", "QBinOp", "QConv", "QLinear", "QPool"})


def retype(
    module: Module,
    types: Types,
    note: Note,
    named: Named,
    *,
    finite: bool = False,
    wide: frozenset[int] = frozenset(),
    wide_outputs: frozenset[int] = frozenset(),
) -> Module:
    """The module with its element types exchanged for others; `finite` bounds are the device's.

    Its labels are numbers of the source, of which a note says what they are. Values that are `wide`
    stay f32, and leave the module so where they are among `wide_outputs`.
    """
    numbers = module.labels.nodes if module.labels is not None else {}

    def describe(op: CoreOperation) -> str:
        return named(int(numbers.get(op.value_id, op.value_id)))

    walk = _TypeChanger(module, types, note, describe, finite, wide)
    for op in module.operations:
        walk.take(op)
    walk.note_clipped()
    left = {value: walk.wides[value] for value in wide_outputs if value in walk.wides}
    outputs = [left[value] if value in left else walk.value(value) for value in module.outputs]
    retyped = walk.builder.module(*outputs)
    ids = {**walk.ids, **walk.wides}
    labels = module.labels.renumber(ids) if module.labels is not None else Labels()
    return replace(retyped, labels=labels)


class _TypeChanger:
    """Goes down a module and builds it anew."""

    def __init__(
        self,
        module: Module,
        types: Types,
        note: Note,
        describe: Callable[[CoreOperation], str],
        finite: bool,
        wide: frozenset[int],
    ) -> None:
        self.builder = Builder()
        self.ids: dict[int, int] = {}
        self.wides: dict[int, int] = {}  # what stays f32
        self._cast: dict[int, int] = {}  # what is narrow, and wide for some
        self._kept = wide
        self._keeping = guarding_constants(module)
        self.clipped: list[CoreOperation] = []  # that had no bound on one side
        self._seen: dict[int, CoreOperation] = {}
        self._constants: dict[int, CoreOperation] = {}
        self._types = types
        self._note = note
        self._describe = describe
        self._finite = finite

    def take(self, op: CoreOperation) -> None:
        """One operation. Constants are made where they are used: in which type depends on that."""
        self._seen[op.value_id] = op
        if "constant" in OPS[op.opcode].traits:
            self._constants[op.value_id] = op
        elif op.value_id in self._kept and op.opcode == "Input":
            name = str(op.attributes["name"])
            self.wides[op.value_id] = self.builder.input(name, "f32", op.type.shape)
        elif op.value_id in self._kept:
            operands = map(self._in_f32, op.operands)
            given = {**op.attributes}
            self._clamp_numbers(op, given, "f32")
            self.wides[op.value_id] = self.builder.add(op.opcode, *operands, **given)
        else:
            self.ids[op.value_id] = self._rebuild(op)

    def note_clipped(self) -> None:
        """One note on bounds that the device wants and the model does not have."""
        if not self.clipped:
            return
        first, *others = self.clipped
        most = GRAPH_TYPES[self._types.get(first.type.dtype, first.type.dtype)].largest_finite
        more = f" and {len(others)} more hold" if others else " holds"
        self._note(f"`Clip` {self._describe(first)}{more} infinities at {most:g} as well")

    def _is_bounded(self, source: int) -> bool:
        """Whether a value is never infinite: what made it has bounds of its own."""
        op = self._seen[source]
        while op.opcode in _MOVING:
            op = self._seen[op.operands[0]]
        if op.opcode == "Cast":
            inner = self._seen[op.operands[0]].type.element
            return inner.is_integer and inner.bits <= _SHORT
        return op.opcode in _BOUNDED or (op.opcode, op.attributes.get("op")) in _BOUNDED_UNARY

    def value(self, source: int) -> int:
        """The value that a value has become."""
        if source in self.wides and source not in self.ids:
            self.ids[source] = self.builder.add("Cast", self.wides[source], to=self._types["f32"])
        if source not in self.ids:
            op = self._constants[source]
            self.ids[source] = self._constant(op, self._types.get(op.type.dtype, op.type.dtype))
        return self.ids[source]

    def _constant(self, op: CoreOperation, dtype: str) -> int:
        array = constant_array(op)
        assert array is not None
        return self.builder.constant(self._converted_elements(op, array, dtype), dtype, copy=False)

    def _rebuild(self, op: CoreOperation) -> int:
        dtype = self._types.get(op.type.dtype, op.type.dtype)
        if op.opcode == "Input":
            return self.builder.input(str(op.attributes["name"]), dtype, op.type.shape)
        if op.opcode in _QUANTISING and "f32" in self._types:
            return self._rebuild_quantising(op, dtype)
        if op.opcode == "Compare" and not self.wides.keys().isdisjoint(op.operands):
            return self.builder.add("Compare", *map(self._in_f32, op.operands), **op.attributes)
        operands = [self.value(o) for o in op.operands]
        if op.opcode == "Cast" and self._is_idle_cast(op, operands[0], dtype):
            return operands[0]
        given = {**op.attributes}
        for name in _TYPE_ATTRIBUTES:
            if name in given and OPS[op.opcode].attribute(name) is not None:
                given[name] = self._types.get(str(given[name]), given[name])
        self._clamp_numbers(op, given, dtype)
        value = self.builder.add(op.opcode, *operands, **given)
        if op.opcode in FIXED_RESULTS and self.builder.type_of(value).dtype != dtype:
            value = self.builder.add("Cast", value, to=dtype)
        return self._in_four_bits(op, value) if op.type.element.bits < 8 else value

    def _in_four_bits(self, op: CoreOperation, value: int) -> int:
        """What an operation makes of 4-bit integers in bytes, where it could leave 4 bits."""
        element = op.type.element
        if op.opcode in _PICKING:
            return value
        inner = self._seen[op.operands[0]].type.element if op.opcode == "Cast" else element
        stops = op.attributes.get("saturate") or not inner.is_integer
        if op.opcode in _SATURATING or (op.opcode == "Cast" and stops):
            ends = {"min": float(element.lowest), "max": float(element.highest)}
            return self.builder.add("Clip", value, **ends)
        if inner.kind == "bool":
            return value
        # The upper half of a byte drops out, and the lower one takes its place, with its sign.
        sixteen = self.builder.constant(np.array(16, self.builder.type_of(value).element.dtype))
        moved = self.builder.add("BinOp", value, sixteen, op="Mul")
        return self.builder.add("BinOp", moved, sixteen, op="Div")

    def _is_idle_cast(self, op: CoreOperation, operand: int, dtype: str) -> bool:
        """Whether a cast has become one to the type that is there."""
        return self.builder.type_of(operand).dtype == dtype and not op.attributes.get("saturate")

    def _clamp_numbers(self, op: CoreOperation, given: dict[str, object], dtype: str) -> None:
        """Bounds and fillings that the type cannot hold, moved inside."""
        if GRAPH_TYPES[dtype].kind != "float":
            self._clamp_integer(op, given, dtype)
            return
        if op.opcode == "Clip" and self._finite:
            filled = OPS["Clip"].with_defaults(op.attributes)
            given |= {"min": float(filled["min"]), "max": float(filled["max"])}
            is_open = max(abs(filled["min"]), abs(filled["max"])) == np.inf
            if is_open and not self._is_bounded(op.operands[0]):
                self.clipped.append(op)
        most = GRAPH_TYPES[dtype].largest_finite
        filling = given.get("value")
        if op.opcode == "Pad" and isinstance(filling, float) and most < abs(filling) < np.inf:
            given["value"] = float(np.copysign(most, filling))
        for name in ("min", "max") if op.opcode == "Clip" else ():
            number = given.get(name)
            if isinstance(number, float) and (self._finite or np.isfinite(number)):
                given[name] = held = narrow_bound(number, GRAPH_TYPES[dtype])
                if 0 < abs(number) < abs(held):
                    bound_text = f"`Clip` {self._describe(op)} has the bound {number:g}"
                    self._note(f"{bound_text}, too small for {dtype}; it is held at {held:.2g}")

    def _clamp_integer(self, op: CoreOperation, given: dict[str, object], dtype: str) -> None:
        """A filling that a narrower type of integers does not have."""
        filling = given.get("value")
        if op.opcode != "Pad" or not isinstance(filling, int | float) or dtype == op.type.dtype:
            return
        element = GRAPH_TYPES[dtype]
        held = min(max(filling, element.lowest), element.highest)
        if held != filling:
            given["value"] = held
            self._note(
                f"`Pad` {self._describe(op)} fills with {filling:g}, which lies beyond {dtype}; "
                f"it is held at {held:g}"
            )

    def _rebuild_quantising(self, op: CoreOperation, dtype: str) -> int:
        """Between f32 and integers, whatever the precision: casts stand around it."""
        made = self.builder.add(op.opcode, *map(self._in_f32, op.operands), **op.attributes)
        if self.builder.type_of(made).dtype == dtype:
            return made
        return self.builder.add("Cast", made, to=dtype)

    def _in_f32(self, source: int) -> int:
        """A value with its floats in f32."""
        if source in self.wides:
            return self.wides[source]
        if source in self._constants:
            op = self._constants[source]
            return self._constant(op, op.type.dtype)
        value = self.value(source)
        type_ = self.builder.type_of(value)
        if type_.element.is_integer or type_.dtype == "f32":
            return value
        if value not in self._cast:
            self._cast[value] = self.builder.add("Cast", value, to="f32")
        return self._cast[value]

    def _converted_elements(self, op: CoreOperation, array: Array, dtype: str) -> Array:
        """Elements in another type, moved inside its range where they lie beyond."""
        if dtype == op.type.dtype:
            return array
        element = GRAPH_TYPES[dtype]
        if op.type.element.bits < 8:
            return array.astype(element.dtype)
        narrowed = narrow(array, element, keeps_nonzero=op.value_id in self._keeping)
        for note in narrowed.notes(self._describe(op), element):
            self._note(note)
        return narrowed.array

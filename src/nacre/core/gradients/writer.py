"""Where the operations of a gradient are written: values with arithmetic, ids that follow.

Equal operations are written once, and the operands of those that commute stand by ascending id, so
that what is written is as canonical as what it is added to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, prod

import numpy as np

from nacre.base.diagnostics import InternalError
from nacre.core.module import CoreOperation, Module, Shape, TensorType
from nacre.core.ops import OPS, is_commutative
from nacre.core.rewrite.exact.fold_constants import MAX_ELEMENTS
from nacre.core.rules.signature import dimension_problem
from nacre.core.values import Array, Attributes, Literal, Word, attributes

_SCALARS = {"i64": "ConstI64", "f32": "ConstF32", "f64": "ConstF64"}


class NoGradient(Exception):  # noqa: N818 - of a module that is right
    """A use of an operation has no gradient that can be written; the text says why."""


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of the module that is written. Numbers beside it become constants of its type."""

    writer: Writer
    id: int
    type: TensorType

    @property
    def shape(self) -> Shape:
        """Its shape."""
        return self.type.shape

    @property
    def rank(self) -> int:
        """How many axes it has."""
        return len(self.type.shape)

    @property
    def dtype(self) -> str:
        """Its element type."""
        return self.type.dtype

    def op(self, opcode: str, *others: Value, **given: object) -> Value:
        """An operation with this value as its first operand."""
        return self.writer.add(opcode, self, *others, **given)

    def binop(self, word: str, other: Value | float, opcode: str = "BinOp") -> Value:
        """An operation of two; `Compare` has such words too."""
        rhs = other if isinstance(other, Value) else self.writer.scalar(other, self.dtype)
        return self.writer.binop(opcode, word, self, rhs)

    def unary(self, word: str) -> Value:
        """A function of each element."""
        return self.op("Unary", op=word)

    def compare(self, word: str, other: Value | float) -> Value:
        """Whether a relation holds."""
        return self.binop(word, other, "Compare")

    def exp(self) -> Value:
        """Its exponential."""
        return self.op("Exp")

    def reshape(self, shape: Sequence[int]) -> Value:
        """The same elements under another shape."""
        return self if tuple(shape) == self.shape else self.op("Reshape", new_shape=tuple(shape))

    def transpose(self, permutation: Sequence[int]) -> Value:
        """The axes in another order."""
        order = tuple(permutation)
        return self if order == tuple(range(self.rank)) else self.op("Transpose", permutation=order)

    def sum(self, axes: Sequence[int], keepdims: bool = False) -> Value:
        """The sum over axes; none is none, not all as in `Sum`."""
        return self.op("Sum", axes=tuple(axes), keepdims=keepdims) if axes else self

    def __add__(self, other: Value | float) -> Value:
        return self.binop("Add", other)

    def __sub__(self, other: Value | float) -> Value:
        return self.binop("Sub", other)

    def __rsub__(self, other: float) -> Value:
        return self.writer.scalar(other, self.dtype) - self

    def __mul__(self, other: Value | float) -> Value:
        return self.binop("Mul", other)

    def __truediv__(self, other: Value | float) -> Value:
        return self.binop("Div", other)

    def __neg__(self) -> Value:
        return self.op("Neg")

    __radd__, __rmul__ = __add__, __mul__


def where(condition: Value, a: Value | float, b: Value | float) -> Value:
    """Elements of the one or the other; one of them at least is no number."""
    known = next(side for side in (a, b) if isinstance(side, Value))
    sides = [
        side if isinstance(side, Value) else known.writer.scalar(side, known.dtype)
        for side in (a, b)
    ]
    return condition.op("Where", *sides)


class Writer:
    """Appends operations to those of a module; their types are inferred."""

    def __init__(self, module: Module, is_v1: bool) -> None:
        self.operations: list[CoreOperation] = []
        self._next = max((op.value_id for op in module.operations), default=-1) + 1
        self._is_v1 = is_v1
        self._written: dict[object, Value] = {}
        self._inferred: dict[object, TensorType] = {}
        self._numbers: dict[int, float] = {}  # of the scalars that were written

    def add(self, opcode: str, *operands: Value, **given: object) -> Value:
        """An operation, written unless it is there already."""
        filled = _attributes(opcode, given)
        if is_commutative(opcode, filled):
            operands = tuple(sorted(operands, key=lambda value: value.id))
        # As keys 1, 1.0 and true are equal, which attributes tell apart.
        shown = repr(filled) if filled else ""
        key = (opcode, tuple([value.id for value in operands]), shown)
        known = self._written.get(key)
        if known is None:
            types = tuple([value.type for value in operands])
            type_ = self._type(opcode, types, filled, shown)
            known = self._written[key] = self._append(opcode, key[1], filled, type_)
        return known

    def _type(
        self, opcode: str, types: tuple[TensorType, ...], filled: Attributes, opcode_text: str
    ) -> TensorType:
        key = (opcode, types, opcode_text)
        type_ = self._inferred.get(key)
        if type_ is None:
            inferred = OPS[opcode].infer(types, filled)
            if inferred is None:
                operand_types = ", ".join(map(str, types))
                raise InternalError(f"a gradient has `{opcode}` {opcode_text} of {operand_types}")
            problem = dimension_problem(inferred)
            if problem is not None:
                raise NoGradient(f"it would take a {opcode} to {inferred}, and {problem}")
            type_ = self._inferred[key] = inferred
        return type_

    def _append(
        self, opcode: str, operands: tuple[int, ...], filled: Attributes, type_: TensorType
    ) -> Value:
        value = Value(self, self._next, type_)
        self.operations.append(CoreOperation(self._next, opcode, operands, filled, type_))
        self._next += 1
        return value

    def binop(self, opcode: str, word: str, a: Value, b: Value) -> Value:
        """Two tensors element by element; 1 times x is x, and scalars are multiplied at once."""
        if word == "Mul":
            known = [self._numbers.get(side.id) for side in (a, b)]
            for number, other in zip(known, (b, a), strict=True):
                if number == 1.0:
                    return other
            if known[0] is not None and known[1] is not None and a.type.element.bits >= 32:
                product = float(a.type.element.dtype.type(known[0] * known[1]))
                if isfinite(product):
                    return self.scalar(product, a.dtype)
        return self.add(opcode, a, b, op=word)

    def scalar(self, number: float, dtype: str) -> Value:
        """A constant without axes."""
        with np.errstate(over="ignore"):  # a count of elements that a half float does not hold
            array = np.array(number).astype(TensorType(dtype).element.dtype)
        value = array.item() if dtype in _SCALARS else None
        key = ("scalar", dtype, array.tobytes())
        known = self._written.get(key)
        if known is None:
            if value is None:
                known = self._literal(array, dtype)
            else:
                given = attributes({"value": value})
                known = self._append(_SCALARS[dtype], (), given, TensorType(dtype))
            self._written[key] = known
            self._numbers[known.id] = float(array)
        return known

    def constant(self, array: Array, dtype: str) -> Value:
        """A tensor literal, written unless it is there already."""
        data = np.ascontiguousarray(array.astype(TensorType(dtype).element.dtype))
        key = ("tensor", dtype, data.shape, data.tobytes())
        if key not in self._written:
            self._written[key] = self._literal(data, dtype)
        return self._written[key]

    def _literal(self, data: Array, dtype: str) -> Value:
        given = {"data": Literal(data), "dtype": Word(dtype), "shape": tuple(data.shape)}
        return self._append("ConstTensor", (), attributes(given), TensorType(dtype, data.shape))

    def fill(self, number: float, dtype: str, shape: Shape) -> Value:
        """A tensor of one number, for operations that `core-v1` does not have."""
        single = self.scalar(number, dtype)
        return single.op("Broadcast", shape=shape) if shape else single

    def iota(self, shape: Shape, axis: int, dtype: str = "i64") -> Value:
        """Each element is its place along an axis."""
        return self.add("Iota", shape=shape, axis=axis, dtype=dtype)

    def broadcast_to(self, value: Value, shape: Shape) -> Value:
        """A value stretched to a shape that it broadcasts to.

        In a module of `core-v1` by a product with ones, which that profile has, unless it would
        take too many of them.
        """
        if prod(value.shape) == prod(shape):
            return value.reshape(shape)
        padded_shape = (1,) * (len(shape) - value.rank) + value.shape
        ones_shape = tuple(
            n if mine == 1 else 1 for mine, n in zip(padded_shape, shape, strict=True)
        )
        if not self._is_v1 or prod(ones_shape) > MAX_ELEMENTS:
            return value.op("Broadcast", shape=shape)
        number, dtype = self._numbers.get(value.id), value.type.element.dtype
        if number is not None:
            return self.constant(np.full(shape, number, dtype), value.dtype)
        return value.op("BinOp", self.constant(np.ones(ones_shape, dtype), value.dtype), op="Mul")


def _attributes(opcode: str, given: dict[str, object]) -> Attributes:
    """Attributes with plain strings as words, where the table does not want a string."""
    found = dict(given)
    for name, value in given.items():
        spec = OPS[opcode].attribute(name) if isinstance(value, str) else None
        if spec is not None and spec.kind != "string":
            found[name] = Word(value)
    return attributes(found)

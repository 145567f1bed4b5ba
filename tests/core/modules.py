"""Random well-typed modules of Core v1, values for their inputs, and a plain interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from nacre.core.builder import Builder
from nacre.core.module import CoreOperation, Module, TensorType
from nacre.core.ops import OPS
from nacre.core.values import Custom, Literal
from nacre.kernels.interface import call as kernel
from nacre.kernels.interface.shapes import broadcast
from nacre.kernels.registry import PRIMITIVES

Array = npt.NDArray[Any]
DTYPES = ("f32", "f64", "i32", "i64")
_MOST_ELEMENTS = 256
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 3.25, 1e-3, -7.75, 1e30, -1e-40, 0.1)
_INTEGERS = (0, 1, -1, 2, 3, -7, 100, 2**31 - 1, -(2**31))
_UNARY = ("Relu", "Neg", "Exp", "Log")


def array_of(type_: TensorType, seed: int, extra: Sequence[float] = ()) -> Array:
    """Numbers that are likely to show a difference: zeros of both signs, ones, extremes."""
    random = np.random.default_rng(seed)
    is_integer = type_.element.is_integer
    pool = [*(_INTEGERS if is_integer else _FLOATS), *(() if is_integer else extra)]
    if seed % 3 == 0:  # uniform, as identities want it
        chosen = np.full(type_.shape, random.integers(len(pool)))
    else:
        chosen = random.integers(len(pool), size=type_.shape)
    with np.errstate(over="ignore"):  # extremes of f32 are infinite in smaller types
        return np.array(pool)[chosen].astype(type_.element.dtype)


def inputs_of(module: Module, seed: int = 1) -> dict[str, Array]:
    """Values for the inputs of a module, NaN and infinities among them."""
    extra = (float("nan"), float("inf"), float("-inf"))
    types = module.input_types.items()
    return {name: array_of(t, seed * 31 + i, extra) for i, (name, t) in enumerate(types)}


@st.composite
def modules(
    draw: st.DrawFn,
    most_operations: int = 14,
    dtypes: Sequence[str] = DTYPES,
    has_late_inputs: bool = False,
    is_further: bool = False,
) -> Module:
    """A random graph over the ops of Core v1; late inputs stand after operations (MOD06).

    `is_further` brings in operations of `nacre-1`.
    """
    growing = _Growing(draw, dtypes, is_further)
    for index in range(draw(st.integers(1, 3))):
        growing.input(index)
    for _ in range(draw(st.integers(1, most_operations))):
        growing.grow()
    outputs = draw(st.lists(st.sampled_from(growing.values), min_size=1, max_size=3))
    made = growing.builder.module(*outputs, growing.values[-1])
    return with_late_inputs(made) if has_late_inputs else made


def with_late_inputs(module: Module) -> Module:
    """The same module with each input where it is first needed, which a builder would refuse."""
    order: dict[int, None] = {}
    operations = module.by_id
    for op in module.operations:
        if op.opcode != "Input":
            order |= dict.fromkeys(o for o in op.operands if operations[o].opcode == "Input")
            order[op.value_id] = None
    order |= dict.fromkeys(op.value_id for op in module.inputs)
    new = {value: place for place, value in enumerate(order)}
    moved = [
        CoreOperation(new[v], op.opcode, tuple(new[o] for o in op.operands), op.attributes, op.type)
        for v in order
        for op in (operations[v],)
    ]
    return Module(tuple(moved), tuple(new[v] for v in module.outputs))


class _Growing:
    """A graph that grows operation by operation."""

    def __init__(self, draw: st.DrawFn, dtypes: Sequence[str], is_further: bool = False) -> None:
        self.builder = Builder("nacre-1" if is_further else "core-v1")
        self.values: list[int] = []
        self._draw = draw
        self._dtypes = dtypes
        self._ways = [
            *([self._binop] * 4),
            *([self._unary] * 3),
            self._reduction,
            *([self._reshape, self._transpose, self._dims] * 2),
            self._slice,
            self._index,
            self._gather,
            self._matmul,
            self._dot,
            self._conv2d,
            self._constant,
        ]
        if is_further:
            self._ways += [self._choice, self._unary_further, self._reduce, self._rearranged] * 3

    def input(self, index: int) -> None:
        """One more input."""
        dtype = self._draw(st.sampled_from(self._dtypes))
        shape = self._draw(st.lists(st.integers(1, 3), max_size=4))
        self.values.append(self.builder.input(f"x{index}", dtype, shape))

    def grow(self) -> None:
        """One more operation, if the one drawn suits a value that is there."""
        value = self._draw(st.sampled_from(self.values[-6:]))
        self._draw(st.sampled_from(self._ways))(value, self.builder.type_of(value))

    def _add(self, opcode: str, *operands: int, **given: object) -> None:
        self.values.append(self.builder.add(opcode, *operands, **given))

    def _literal(self, dtype: str, shape: Sequence[int]) -> int:
        array = array_of(TensorType(dtype, tuple(shape) or (1,)), self._draw(st.integers(0, 200)))
        self.values.append(self.builder.constant(array, dtype))
        if not shape:
            self._add("Reshape", self.values[-1], new_shape=())
        return self.values[-1]

    def _constant(self, value: int, type_: TensorType) -> None:
        is_scalar = self._draw(st.booleans())
        opcode = {"i64": "ConstI64", "f32": "ConstF32", "f64": "ConstF64"}.get(type_.dtype)
        if is_scalar and opcode is not None:
            pool: Sequence[float] = _INTEGERS if opcode == "ConstI64" else _FLOATS
            self._add(opcode, value=self._draw(st.sampled_from(pool)))
        else:
            self._literal(type_.dtype, type_.shape)

    def _binop(self, value: int, type_: TensorType) -> None:
        fitting = [v for v in self.values if self._fits(type_, self.builder.type_of(v))]
        if not fitting:  # the value itself is too large
            return
        other = self._draw(st.sampled_from(fitting))
        if self._draw(st.booleans()):
            shape = self._draw(st.sampled_from([(), (1,), type_.shape]))
            other = self._literal(type_.dtype, shape)
        pair = self._draw(st.permutations([value, other]))
        self._add("BinOp", *pair, op=self._draw(st.sampled_from(["Add", "Sub", "Mul"])))

    def _fits(self, a: TensorType, b: TensorType) -> bool:
        shape = broadcast(a.shape, b.shape)
        return a.dtype == b.dtype and shape is not None and prod(shape) <= _MOST_ELEMENTS

    def _unary(self, value: int, type_: TensorType) -> None:
        is_integer = type_.element.is_integer
        opcode = "Neg" if is_integer else self._draw(st.sampled_from(_UNARY))
        self._add(opcode, value)

    def _reduction(self, value: int, type_: TensorType) -> None:
        axes = self._draw(st.lists(st.integers(0, max(type_.rank - 1, 0)), unique=True))
        axes = axes if type_.rank else []
        opcode = self._draw(st.sampled_from(["Sum", "Mean"]))
        self._add(opcode, value, axes=axes, keepdims=self._draw(st.booleans()))

    def _reshape(self, value: int, type_: TensorType) -> None:
        count = prod(type_.shape)
        shapes = [(count,), type_.shape, type_.shape[::-1], (-1, 1), (1, count)]
        self._add("Reshape", value, new_shape=self._draw(st.sampled_from(shapes)))

    def _transpose(self, value: int, type_: TensorType) -> None:
        permutation = self._draw(st.permutations(range(type_.rank)))
        self._add("Transpose", value, permutation=tuple(permutation))

    def _dims(self, value: int, type_: TensorType) -> None:
        ones = [axis for axis, dim in enumerate(type_.shape) if dim == 1]
        if self._draw(st.booleans()) or type_.rank > 4:
            chosen = st.lists(st.sampled_from(ones), unique=True) if ones else st.just([])
            self._add("Squeeze", value, axes=self._draw(chosen))
        else:
            axes = st.lists(st.integers(0, type_.rank), max_size=2, unique=True)
            self._add("ExpandDims", value, axes=self._draw(axes))

    def _slice(self, value: int, type_: TensorType) -> None:
        starts = tuple(self._draw(st.integers(0, dim - 1)) for dim in type_.shape)
        ends = tuple(
            self._draw(st.integers(s + 1, d)) for s, d in zip(starts, type_.shape, strict=True)
        )
        steps = tuple(self._draw(st.integers(1, 2)) for _ in starts)
        self._add("Slice", value, starts=starts, ends=ends, steps=steps)

    def _index(self, value: int, type_: TensorType) -> None:
        at = tuple(self._draw(st.integers(0, dim - 1)) for dim in type_.shape)
        self._add("Index", value, indices=at)

    def _gather(self, value: int, type_: TensorType) -> None:
        if not 1 <= type_.rank <= 4:
            return
        rows = self._draw(st.lists(st.integers(0, type_.shape[0] - 1), min_size=1, max_size=3))
        dtype = self._draw(st.sampled_from(["i32", "i64"]))
        indices = self.builder.constant(np.array(rows), dtype)
        self.values.append(indices)
        self._add("Gather", value, indices)

    def _matmul(self, value: int, type_: TensorType) -> None:
        if type_.rank >= 2:
            self._add("MatMul", value, self._literal(type_.dtype, (type_.shape[-1], 2)))

    def _dot(self, value: int, type_: TensorType) -> None:
        if type_.rank in (1, 2):
            columns = self._draw(st.sampled_from([(), (2,)]))
            self._add("Dot", value, self._literal(type_.dtype, (type_.shape[-1], *columns)))

    def _conv2d(self, value: int, type_: TensorType) -> None:
        if type_.rank != 4:
            return
        padding = self._draw(st.sampled_from(["Valid", "Same", Custom(((1, 0), (0, 1)))]))
        side = 1 if padding == "Valid" else 2
        weights = self._literal(type_.dtype, (side, side if side == 1 else 1, type_.shape[3], 2))
        strides = self._draw(st.sampled_from([(1, 1), (2, 1)]))
        self._add("Conv2d", value, weights, strides=strides, padding=padding)

    # Of nacre-1

    def _choice(self, value: int, type_: TensorType) -> None:
        """A comparison, and the one or the other by it."""
        fitting = [v for v in self.values if self._fits(type_, self.builder.type_of(v))]
        if not fitting:
            return
        other = self._draw(st.sampled_from(fitting))
        condition = self.builder.add(
            "Compare", value, other, op=self._draw(st.sampled_from(["Lt", "Eq", "Ge"]))
        )
        self._add("Where", condition, value, other)

    def _unary_further(self, value: int, type_: TensorType) -> None:
        if type_.element.is_integer:
            self._add("Unary", value, op=self._draw(st.sampled_from(["Abs", "Sign", "Not"])))
            return
        name = self._draw(st.sampled_from(["Floor", "Sqrt", "Abs", "ReluNan", "Clip", "Cast"]))
        if name == "ReluNan":
            self._add(name, value)
        elif name == "Clip":
            self._add(name, value, min=-1.0, max=self._draw(st.sampled_from([0.5, 6.0])))
        elif name == "Cast":
            self._add(name, value, to=self._draw(st.sampled_from(["f32", "f16", "f64"])))
        else:
            self._add("Unary", value, op=name)

    def _reduce(self, value: int, type_: TensorType) -> None:
        axes = tuple(range(type_.rank))[: self._draw(st.integers(0, type_.rank))]
        kind = self._draw(st.sampled_from(["Max", "Min"]))
        self._add("Reduce", value, op=kind, axes=axes, keepdims=self._draw(st.booleans()))

    def _rearranged(self, value: int, type_: TensorType) -> None:
        if not type_.rank or prod(type_.shape) > _MOST_ELEMENTS // 4:
            return
        way = self._draw(st.sampled_from(["Concat", "Tile", "Flip", "Broadcast", "Pad"]))
        count = self._draw(st.integers(1, 2))
        if way == "Concat":
            self._add(way, *[value] * count, axis=-1)
        elif way == "Tile":
            self._add(way, value, repeats=(count,) * type_.rank)
        elif way == "Flip":
            self._add(way, value, axes=tuple(range(count - 1)))
        elif way == "Broadcast":
            self._add(way, value, shape=(count, *type_.shape)[2 - count :])
        else:
            self._add(way, value, pads=(count - 1,) * (2 * type_.rank))


def interpret(module: Module, inputs: Mapping[str, Array]) -> list[Array]:
    """The outputs of a module: one kernel after the other, everything kept."""
    values: dict[int, Array] = {}
    for op in module:
        if op.opcode == "Input":
            values[op.value_id] = inputs[op.attributes["name"]]
        elif "value" in op.attributes:
            values[op.value_id] = np.array(op.attributes["value"], op.type.element.dtype)
        elif isinstance(op.attributes.get("data"), Literal):
            values[op.value_id] = op.attributes["data"].array
        else:
            types = [module.by_id[operand].type for operand in op.operands]
            call = kernel.Call(
                tuple(kernel.TensorType(t.element, t.shape) for t in types),
                (kernel.TensorType(op.type.element, op.type.shape),),
                OPS[op.opcode].with_defaults(op.attributes),
                ordered=True,
            )
            result: Array = np.empty(op.type.shape, op.type.element.dtype)
            primitive = PRIMITIVES[OPS[op.opcode].primitive or ""]
            fault = primitive.bind(call)([values[operand] for operand in op.operands], [result])
            assert fault is None, fault
            values[op.value_id] = result
    return [values[value] for value in module.outputs]


def same_bits(a: Array, b: Array) -> bool:
    """Whether two arrays agree in type, shape and every bit; one NaN is as good as another."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind != "f":
        return bool((a == b).all())
    is_nan = np.isnan(a)
    same = (a == b) & (np.signbit(a) == np.signbit(b))
    return bool((is_nan == np.isnan(b)).all() and (same | is_nan).all())

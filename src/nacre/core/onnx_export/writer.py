"""Where one operation becomes nodes of ONNX, and which function writes which operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.base.handlers import Handlers
from nacre.core.module import CoreOperation, Shape, TensorType
from nacre.core.onnx_export.graph import Graph, Node, Value
from nacre.core.onnx_export.types import CODES, TELLING, compute_type, takes, wider_type
from nacre.core.ops import OPS
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array

MOST_MADE = 1 << 26  # elements of a constant that an operation needs beside its operands


def require_few(count: int) -> None:
    """Unsupported for a constant that would be too large to make."""
    if count > MOST_MADE:
        raise Unsupported(
            f"it needs a constant of {count:,} elements, expected at most {MOST_MADE:,}"
        )


class OnnxWriter:
    """One operation on its way: its operands, and the nodes that compute it."""

    def __init__(self, op: CoreOperation, operands: Sequence[Value], graph: Graph) -> None:
        self.op = op
        self.type = op.type
        self.attributes: Mapping[str, Any] = OPS[op.opcode].with_defaults(op.attributes)
        self.operands = tuple(operands)
        self.graph = graph
        self._stem = f"%{op.value_id}"

    # Nodes

    def add(
        self, operation: str, *operands: Value | None, type_: TensorType, **attributes: object
    ) -> Value:
        """One more node and its result."""
        return self.add_node(operation, operands, (type_,), **attributes)[0]

    def add_node(
        self,
        operation: str,
        operands: Sequence[Value | None],
        types: Sequence[TensorType],
        **attributes: object,
    ) -> list[Value]:
        """A node with any number of results."""
        self._require_kernel(operation, operands)
        given = list(operands)
        while given and given[-1] is None:
            given.pop()
        results = [self.graph.name(f"{self._stem}.{operation}") for _ in types]
        names = tuple("" if value is None else value.name for value in given)
        self.graph.nodes.append(Node(operation, names, tuple(results), attributes, results[0]))
        return [Value(name, type_) for name, type_ in zip(results, types, strict=True)]

    def _require_kernel(self, operation: str, operands: Sequence[Value | None]) -> None:
        at = TELLING.get(operation, 0)
        telling = operands[at] if at < len(operands) else None
        if telling is not None and not takes(operation, telling.dtype):
            raise Unsupported(f"onnxruntime has no {operation} of `{telling.dtype}`")

    def elementwise(
        self, operation: str, *operands: Value, dtype: str = "", **attributes: object
    ) -> Value:
        """A node that works element by element, broadcast."""
        shape = np.broadcast_shapes(*(value.shape for value in operands))
        type_ = TensorType(dtype or operands[-1].dtype, shape)
        return self.add(operation, *operands, type_=type_, **attributes)

    def move(
        self, operation: str, value: Value, *others: Value | None, shape: Shape, **given: object
    ) -> Value:
        """A node that moves elements, in a type that onnxruntime moves."""
        dtype = wider_type(operation, value.dtype)
        if dtype is None:
            raise Unsupported(f"onnxruntime has no {operation} of `{value.dtype}`")
        type_ = TensorType(dtype, shape)
        moved = self.add(operation, self.cast(value, dtype), *others, type_=type_, **given)
        return self.cast(moved, value.dtype)

    def where(self, condition: Value, a: Value, b: Value) -> Value:
        """Elements of the one or the other."""
        dtype = wider_type("Where", a.dtype)
        assert dtype is not None  # every type has one
        made = self.elementwise("Where", condition, self.cast(a, dtype), self.cast(b, dtype))
        return self.cast(made, a.dtype)

    # Types

    def cast(self, value: Value, dtype: str) -> Value:
        """The same values in another type; integers wrap, floats are rounded."""
        if value.dtype == dtype:
            return value
        given = {"saturate": 0} if dtype.startswith("f8") else {}
        type_ = TensorType(dtype, value.shape)
        return self.add("Cast", value, type_=type_, to=CODES[dtype], **given)

    def to_compute_type(self, value: Value) -> Value:
        """A number in the type that is computed in."""
        if value.dtype == "bool":
            raise Unsupported("arithmetic on `bool`")
        return self.cast(value, compute_type(value.dtype))

    def to_result_type(self, value: Value) -> Value:
        """A value in the element type of the result."""
        return self.cast(value, self.type.dtype)

    # Constants

    def number(self, value: float, dtype: str) -> Value:
        """A number, rounded to its type."""
        with np.errstate(over="ignore"):
            return self.array(np.array(value, GRAPH_TYPES[dtype].dtype), dtype)

    def ints(self, values: Sequence[int]) -> Value:
        """A list of integers, as axes and shapes are written."""
        return self.array(np.array(list(values), np.int64), "i64")

    def array(self, array: Array, dtype: str) -> Value:
        """Elements that are known."""
        return self.graph.shared_tensor(f"{self._stem}.constant", array, dtype)

    def elements(self, value: Value) -> Array | None:
        """The elements of a constant; None where they are computed."""
        return self.graph.elements(value)

    # Views

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """The same elements under another shape."""
        if value.shape == tuple(shape):
            return value
        return self.move("Reshape", value, self.ints(shape), shape=tuple(shape))

    def transpose(self, value: Value, order: Sequence[int]) -> Value:
        """The axes in another order."""
        if list(order) == sorted(order):
            return value
        shape = tuple(value.shape[axis] for axis in order)
        return self.move("Transpose", value, shape=shape, perm=list(order))

    def expand(self, value: Value, shape: Shape) -> Value:
        """Stretched to a shape."""
        if value.shape == shape:
            return value
        return self.move("Expand", value, self.ints(shape), shape=shape)

    def gather(self, value: Value, indices: Value, axis: int) -> Value:
        """The indices in the place of an axis."""
        shape = (*value.shape[:axis], *indices.shape, *value.shape[axis + 1 :])
        return self.move("Gather", value, indices, shape=shape, axis=axis)

    def part(self, value: Value, axis: int, start: int, stop: int | None, step: int = 1) -> Value:
        """A part along one axis; without a stop it goes to the end, backwards to the beginning."""
        last = stop if stop is not None else (1 << 62 if step > 0 else -(1 << 62))
        size = len(range(value.shape[axis])[slice(start, stop, step)])
        shape = (*value.shape[:axis], size, *value.shape[axis + 1 :])
        lists = (self.ints([number]) for number in (start, last, axis, step))
        return self.move("Slice", value, *lists, shape=shape)

    def concatenate(self, values: Sequence[Value], axis: int) -> Value:
        """Tensors after each other along an axis."""
        dtype = wider_type("Concat", values[0].dtype)
        assert dtype is not None  # every type has one
        size = sum(value.shape[axis] for value in values)
        first = values[0].shape
        type_ = TensorType(dtype, (*first[:axis], size, *first[axis + 1 :]))
        given = (self.cast(value, dtype) for value in values)
        return self.cast(self.add("Concat", *given, type_=type_, axis=axis), values[0].dtype)


FORMS = Handlers[Callable[[OnnxWriter], Value]]()  # those of the modules that are imported
writes = FORMS.register

"""An operation in its place, as rewrites see it, and what they may put there instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isclose

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.constants import constant_attributes
from nacre.core.module import CoreOperation, TensorType
from nacre.core.ops import OPS, is_commutative
from nacre.core.rewrite.graph import Graph
from nacre.core.values import Array, Attributes

# What to use in the place of the operation at hand; None: the operation as it is.
Rewrite = Callable[["RewriteSite"], int | None]
# Rewrites by the opcode of the operation that they look at, those that are tried first in front.
Rules = Mapping[str, Sequence[Rewrite]]

# Of two zeros they take one by its place; whoever matches does not tell zeros apart.
_BUT_FOR_ZEROS = frozenset({"Min", "Max"})


class RewriteSite:
    """An operation in its place: what stands before it, and a way to add what stands instead."""

    def __init__(self, graph: Graph, op: CoreOperation) -> None:
        self._graph = graph
        self.op = op  # on the values of the new module

    @property
    def operands(self) -> tuple[int, ...]:
        """The operands of the operation at hand."""
        return self.op.operands

    @property
    def attributes(self) -> Mapping[str, object]:
        """The attributes of the operation, defaults filled in."""
        return OPS[self.op.opcode].with_defaults(self.op.attributes)

    # What stands before it

    def maker(self, value: int, /, *opcodes: str, **attributes: object) -> CoreOperation | None:
        """The operation that defines a value, if it is one of these with these attributes."""
        op = self._graph.operation(value)
        if opcodes and op.opcode not in opcodes:
            return None
        if not attributes:
            return op
        filled = OPS[op.opcode].with_defaults(op.attributes)
        return op if all(filled.get(k) == v for k, v in attributes.items()) else None

    def only(self, value: int, /, *opcodes: str, **attributes: object) -> CoreOperation | None:
        """The same, where nobody else uses the value."""
        return self.maker(value, *opcodes, **attributes) if self.is_single(value) else None

    def is_single(self, value: int) -> bool:
        """Whether a value has one use."""
        return self._graph.is_single(value)

    def type(self, value: int) -> TensorType:
        """The type of a value."""
        return self._graph.operation(value).type

    def constant(self, value: int) -> Array | None:
        """The elements of a constant."""
        return self._graph.constant(value)

    def number(self, value: int) -> float | None:
        """The element of a constant that has the same one everywhere."""
        return self._graph.number(value)

    def is_number(self, value: int, number: float, rel_tol: float = 1e-4) -> bool:
        """Whether a value is a constant near a number: models store theirs in 16 or 32 bits."""
        found = self.number(value)
        return found is not None and isclose(found, number, rel_tol=rel_tol)

    def beside(self, op: CoreOperation, number: float, rel_tol: float = 1e-4) -> int | None:
        """The operand of an operation of two whose other operand is near a number."""
        for value, other in either_order(op):
            if self.is_number(other, number, rel_tol):
                return value
        return None

    def split(self, op: CoreOperation | None) -> tuple[int, Array] | None:
        """The value and the constant that an operation of two is of; None where it is not."""
        for value, other in either_order(op):
            found = self.constant(other)
            if found is not None and self.constant(value) is None:
                return value, found
        return None

    @property
    def parameters(self) -> dict[int, tuple[str, ...]]:
        """Names of constants that are parameters of the model."""
        return self._graph.parameters

    # What stands instead

    def add(self, opcode: str, *operands: int, **attributes: object) -> int:
        """An operation more."""
        return self._graph.add(opcode, *operands, **attributes)

    def reshape(self, value: int, shape: Sequence[int]) -> int:
        """A tensor under another shape."""
        if self.type(value).shape == tuple(shape):
            return value
        return self.add("Reshape", value, new_shape=tuple(shape))

    def literal(self, array: Array, dtype: str) -> int:
        """A constant more, rounded to an element type."""
        return self._graph.literal(array.astype(GRAPH_TYPES[dtype].dtype), dtype)

    def replace(
        self,
        *operands: int,
        opcode: str | None = None,
        attributes: Attributes | None = None,
    ) -> int:
        """The operation at hand, of the same type, with something else about it."""
        op = self.op
        given = op.attributes if attributes is None else attributes
        replaced = CoreOperation(op.value_id, opcode or op.opcode, operands, given, op.type)
        return self._graph.replace(replaced)

    def replace_by_constant(self, array: Array) -> int:
        """Its result, where that is known."""
        opcode, given = constant_attributes(array, self.op.type)
        return self.replace(opcode=opcode, attributes=given)


def either_order(op: CoreOperation | None) -> Sequence[tuple[int, int]]:
    """The operands of an operation of two; also exchanged, where that gives the same."""
    if op is None:
        return ()
    first, second = op.operands
    if is_commutative(op.opcode, op.attributes) or op.attributes.get("op") in _BUT_FOR_ZEROS:
        return (first, second), (second, first)
    return ((first, second),)


def merge_rules(*tables: Rules) -> Rules:
    """Several tables as one; those that come first are tried first."""
    found: dict[str, list[Rewrite]] = {}
    for table in tables:
        for opcode, rewrites in table.items():
            found.setdefault(opcode, []).extend(rewrites)
    return found


def per_channel(array: Array, shape: Sequence[int], axis: int) -> Array | None:
    """One number for each place along an axis, if that is what a constant comes to.

    `shape` is that of the tensor that the constant is broadcast against.
    """
    if array.ndim > len(shape):
        return None
    whole = array.reshape((1,) * (len(shape) - array.ndim) + array.shape)
    if any(dim != 1 for at, dim in enumerate(whole.shape) if at != axis):
        return None
    return np.broadcast_to(np.ravel(whole), (shape[axis],)).astype(np.float64)

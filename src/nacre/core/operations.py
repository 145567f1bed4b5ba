"""What modules are made of: tensor types, operations, state. Values, never changed."""

from __future__ import annotations

from math import prod

from msgspec import Struct

from nacre.base.elements import GRAPH_TYPES, ElementType, bytes_needed
from nacre.core.values import NO_ATTRIBUTES, Attributes

Shape = tuple[int, ...]


class TensorType(Struct, frozen=True, gc=False):
    """An element type and a shape; a scalar has the shape ()."""

    dtype: str
    shape: Shape = ()

    @property
    def rank(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    @property
    def element(self) -> ElementType:
        """The element type as the table knows it."""
        return GRAPH_TYPES[self.dtype]

    @property
    def size_bytes(self) -> int:
        """The bytes of a dense tensor."""
        return bytes_needed(prod(self.shape), self.element)

    def __str__(self) -> str:
        return f"tensor<{self.dtype}[{', '.join(map(str, self.shape))}]>"


class CoreOperation(Struct, frozen=True, gc=False):
    """One instruction. It defines the value `value_id`."""

    value_id: int
    opcode: str
    operands: tuple[int, ...]
    attributes: Attributes
    type: TensorType

    @property
    def result_type(self) -> str:
        """The type as text."""
        return str(self.type)


def operation(
    value_id: int,
    opcode: str,
    operands: tuple[int, ...],
    type_: TensorType,
    attributes: Attributes = NO_ATTRIBUTES,
) -> CoreOperation:
    """An operation, its attributes last."""
    return CoreOperation(value_id, opcode, operands, attributes, type_)


class State(Struct, frozen=True, gc=False):
    """An input that keeps a value between runs: which output feeds it, and what it starts as."""

    name: str  # of the Input
    output: int
    initial: int  # a constant

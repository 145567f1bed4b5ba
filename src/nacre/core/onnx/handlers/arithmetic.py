"""Formulas over values of a module, written as formulas."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.onnx.onnx_node import OnnxNode
from nacre.core.values import Array


class Expr:
    """A value; operators add operations, numbers take its element type."""

    def __init__(self, node: OnnxNode, value: int) -> None:
        self.node = node
        self.value = value

    @property
    def dtype(self) -> str:
        """The element type."""
        return self.node.builder.type_of(self.value).dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return self.node.builder.type_of(self.value).shape

    def _with(self, op: str, other: Expr | float) -> Expr:
        operands = (self.value, self._operand(other))
        return Expr(self.node, self.node.add("BinOp", *operands, op=op))

    def _operand(self, other: Expr | float) -> int:
        return other.value if isinstance(other, Expr) else self.node.scalar(other, self.dtype)

    def __add__(self, other: Expr | float) -> Expr:
        return self._with("Add", other)

    def __sub__(self, other: Expr | float) -> Expr:
        return self._with("Sub", other)

    def __mul__(self, other: Expr | float) -> Expr:
        return self._with("Mul", other)

    def __truediv__(self, other: Expr | float) -> Expr:
        return self._with("Div", other)

    def __mod__(self, other: Expr | float) -> Expr:
        return self._with("Mod", other)

    def __rsub__(self, other: float) -> Expr:
        return Expr(self.node, self.node.scalar(other, self.dtype)) - self

    def __and__(self, other: Expr) -> Expr:
        return self._with("And", other)

    def __or__(self, other: Expr) -> Expr:
        return self._with("Or", other)

    def __xor__(self, other: Expr) -> Expr:
        return self._with("Xor", other)

    def at_most(self, other: Expr | float) -> Expr:
        """The smaller of both."""
        return self._with("Min", other)

    def at_least(self, other: Expr | float) -> Expr:
        """The larger of both."""
        return self._with("Max", other)

    def is_(self, relation: str, other: Expr | float) -> Expr:
        """Whether a relation holds: Eq, Ne, Lt, Le, Gt or Ge."""
        made = self.node.add("Compare", self.value, self._operand(other), op=relation)
        return Expr(self.node, made)

    def choose(self, yes: Expr, no: Expr | float) -> Expr:
        """Of truth values: the one or the other."""
        made = self.node.add("Where", self.value, yes.value, yes._operand(no))
        return Expr(self.node, made)

    def map(self, op: str) -> Expr:
        """A function of each element."""
        return Expr(self.node, self.node.add("Unary", self.value, op=op))

    def to(self, dtype: str) -> Expr:
        """The same values in another type."""
        return Expr(self.node, self.node.cast(self.value, dtype))

    def reshape(self, *shape: int) -> Expr:
        """The same elements under another shape."""
        return Expr(self.node, self.node.reshape(self.value, shape))

    def transpose(self, *order: int) -> Expr:
        """The axes in another order."""
        return Expr(self.node, self.node.transpose(self.value, order))

    def rows(self, indices: Expr) -> Expr:
        """Parts of the first axis by index."""
        made = self.node.add("GatherAxis", self.value, indices.value, axis=0)
        return Expr(self.node, made)

    def sum(self, axes: Sequence[int], *, keepdims: bool = False) -> Expr:
        """The sum over axes."""
        made = self.node.add("Sum", self.value, axes=tuple(axes), keepdims=keepdims)
        return Expr(self.node, made)


def operand(node: OnnxNode, index: int) -> Expr:
    """An operand of the node."""
    return Expr(node, node.value(index))


def known_expr(node: OnnxNode, array: Array, dtype: str | None = None) -> Expr:
    """Elements as a value, in a type where one is named."""
    elements = array if dtype is None else array.astype(GRAPH_TYPES[dtype].dtype)
    return Expr(node, node.constant(np.asarray(elements)))

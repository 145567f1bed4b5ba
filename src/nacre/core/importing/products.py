"""The product of matrices as importers have it: vectors count as a row or as a column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from nacre.core.builder import Builder


class ModelNode(Protocol):
    """A node or a call of a model, which adds operations to a module."""

    @property
    def builder(self) -> Builder:
        """What operations are added to."""

    def add(self, opcode: str, *values: int, **attributes: object) -> int:
        """An operation; one that does not fit is the node's fault."""

    def reshape(self, value: int, shape: Sequence[int]) -> int:
        """The same elements under another shape."""


def product(node: ModelNode, a: int, b: int) -> int:
    """The product of two values, batched; the axes that vectors lack go away again."""
    a_dims, b_dims = node.builder.type_of(a).shape, node.builder.type_of(b).shape
    left = node.reshape(a, (1, *a_dims)) if len(a_dims) == 1 else a
    right = node.reshape(b, (*b_dims, 1)) if len(b_dims) == 1 else b
    matrices = node.add("MatMul", left, right)
    dims = list(node.builder.type_of(matrices).shape)
    if len(b_dims) == 1:
        del dims[-1]
    if len(a_dims) == 1:
        del dims[-1 if len(b_dims) == 1 else -2]
    return node.reshape(matrices, dims)

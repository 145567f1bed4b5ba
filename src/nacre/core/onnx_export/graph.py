"""The graph of an ONNX model while it grows: nodes, tensors, and names that are all different."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from msgspec import Struct

from nacre.core.module import TensorType
from nacre.core.onnx_export.types import raw_bytes
from nacre.core.values import Array

_MOST_SHOWN = 4  # elements of a constant that its name tells


class Value(Struct, frozen=True):
    """A tensor: its name in the graph, and its type in the words of Core IR."""

    name: str
    type: TensorType

    @property
    def dtype(self) -> str:
        """Its element type."""
        return self.type.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return self.type.shape


class Node(Struct, frozen=True):
    """One node; an operand that is left out has no name."""

    operation: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    attributes: Mapping[str, Any]
    name: str


class Tensor(Struct, frozen=True):
    """An initialiser."""

    name: str
    dtype: str
    array: Array


class Graph:
    """What has been written so far. Tensors that were made on the way are shared."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.tensors: list[Tensor] = []
        self._elements: dict[str, Array] = {}
        self._names: dict[str, int] = {}
        self._shared: dict[tuple[str, tuple[int, ...], bytes], Value] = {}

    def name(self, wanted: str) -> str:
        """A name for a tensor, as near to the one that is wanted as can be."""
        return unique(wanted, self._names)

    def tensor(self, wanted: str, array: Array, dtype: str) -> Value:
        """One more initialiser."""
        name = self.name(wanted)
        self.tensors.append(Tensor(name, dtype, array))
        self._elements[name] = array
        return Value(name, TensorType(dtype, array.shape))

    def shared_tensor(self, wanted: str, array: Array, dtype: str) -> Value:
        """An initialiser that may serve several operations."""
        key = dtype, array.shape, raw_bytes(array, dtype)
        if key not in self._shared:
            told = f"{dtype} {array.tolist()}" if array.size <= _MOST_SHOWN else wanted
            self._shared[key] = self.tensor(told, array, dtype)
        return self._shared[key]

    def copy(self, value: Value, name: str) -> None:
        """The same tensor under another name."""
        given = {"perm": list(range(value.type.rank))}
        # `Identity` of onnxruntime has no integers of 4 bits.
        is_tiny = value.dtype in ("i4", "u4")
        operation, attributes = ("Transpose", given) if is_tiny else ("Identity", {})
        self.nodes.append(Node(operation, (value.name,), (name,), attributes, name))

    def prune(self, outputs: Collection[str], inputs: Collection[str]) -> None:
        """Drop what no output needs; a tensor with the name of an input is that input's default."""
        needed, kept = set(outputs), list[Node]()
        for node in reversed(self.nodes):
            if needed.intersection(node.results):
                needed.update(node.operands)
                kept.append(node)
        self.nodes = kept[::-1]
        self.tensors = [t for t in self.tensors if t.name in needed or t.name in inputs]

    def elements(self, value: Value) -> Array | None:
        """The elements of a tensor that is known."""
        return self._elements.get(value.name)


def unique(wanted: str, taken: dict[str, int]) -> str:
    """A name that is not taken yet, and is from now on; `taken` counts the uses of each."""
    # What is no Unicode, such as half of a surrogate pair, protobuf refuses.
    plain = wanted.encode("utf-8", "replace").decode() or "_"
    name = plain
    while name in taken:
        taken[plain] += 1
        name = f"{plain}.{taken[plain]}"
    taken[name] = 1
    return name

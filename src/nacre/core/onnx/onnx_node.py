"""One node as its handler sees it: operands known or not, attributes with defaults, a builder."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nacre.base.diagnostics import InputError
from nacre.core.builder import dtype_name
from nacre.core.importing.model_builder import ModelBuilder
from nacre.core.module import TensorType
from nacre.core.onnx.findings import BIND, CAST, NOT_EMPTY, SMALLER, Unsound
from nacre.core.onnx.reading.files import onnx
from nacre.core.onnx.reading.nodes import Node
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array

# A tensor of the model: its elements, where they are known, else a value of the module.
Tensor = Array | int


class OnnxNode:
    """A node with its operands. Handlers ask it and add operations to the module through it."""

    def __init__(
        self, node: Node, operands: Sequence[Tensor | None], builder: ModelBuilder
    ) -> None:
        self.source = node  # as the file has it
        self.builder = builder
        self._operands = list(operands)

    @property
    def op(self) -> str:
        """What ONNX calls the operation."""
        return self.source.op

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of its results; one that nobody asks for has none."""
        return self.source.outputs

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Those that the file gives."""
        return self.source.attributes

    @property
    def opset(self) -> int:
        """The version of the node's domain."""
        return self.source.opset

    @property
    def count(self) -> int:
        """How many operands there are, those left out at the end not counted."""
        given = [i for i, operand in enumerate(self._operands) if operand is not None]
        return given[-1] + 1 if given else 0

    def has(self, index: int) -> bool:
        """Whether an operand is given."""
        return index < len(self._operands) and self._operands[index] is not None

    def tensor(self, index: int) -> Tensor:
        """An operand that must be given."""
        found = self._operands[index] if index < len(self._operands) else None
        if found is None:
            raise Unsound(f"operand {index} is missing")
        return found

    def known(self, index: int) -> Array | None:
        """The elements of an operand, where they are known."""
        if not self.has(index):
            return None
        found = self.tensor(index)
        return found if isinstance(found, np.ndarray) else None

    @property
    def is_known(self) -> bool:
        """Whether the elements of every operand are known."""
        return all(o is None or isinstance(o, np.ndarray) for o in self._operands)

    def require_known(self, index: int, what: str) -> Array:
        """The elements of an operand that the module's shapes depend on."""
        found = self.known(index)
        if found is None:
            raise Unsupported(f"{what} is computed when the model runs, expected a constant", BIND)
        return found

    def value(self, index: int) -> int:
        """An operand as a value of the module."""
        return self.materialise(self.tensor(index))

    def materialise(self, tensor: Tensor) -> int:
        """A tensor as a value of the module; known elements become a constant."""
        if isinstance(tensor, int):
            return tensor
        return self.constant(tensor)

    def constant(self, array: Array) -> int:
        """Elements as a value of the module."""
        if 0 in array.shape:
            raise Unsupported("an operand has no elements; Core IR has no empty tensors", NOT_EMPTY)
        try:
            name = dtype_name(array.dtype)
        except ValueError:
            raise _unsupported_elements(array) from None
        return self.builder.constant(array, name)

    def scalar(self, number: float, dtype: str) -> int:
        """A constant of rank 0."""
        from nacre.base.elements import GRAPH_TYPES

        return self.builder.constant(np.array(number, GRAPH_TYPES[dtype].dtype), dtype)

    def type(self, index: int) -> TensorType:
        """The type of an operand."""
        return self.type_of(self.tensor(index))

    def type_of(self, tensor: Tensor) -> TensorType:
        """The type of a tensor."""
        if isinstance(tensor, int):
            return self.builder.type_of(tensor)
        try:
            return TensorType(dtype_name(tensor.dtype), tensor.shape)
        except ValueError:
            raise _unsupported_elements(tensor) from None

    def shape(self, index: int) -> tuple[int, ...]:
        """The shape of an operand."""
        return (
            np.shape(t)
            if isinstance(t := self.tensor(index), np.ndarray)
            else self.type(index).shape
        )

    # Attributes

    def attribute(self, name: str, default: Any = None) -> Any:  # noqa: ANN401
        """An attribute, or its default."""
        return self.attributes.get(name, default)

    def require(self, name: str) -> Any:  # noqa: ANN401 - whatever it holds
        """An attribute that must be given."""
        if name not in self.attributes:
            raise Unsound(f"attribute `{name}` is missing")
        return self.attributes[name]

    def ints(
        self, name: str, index: int | None = None, default: Sequence[int] | None = None
    ) -> tuple[int, ...] | None:
        """Integers that are an attribute in some versions and an operand in others."""
        if name in self.attributes:
            integers = self.attributes[name]
            return (
                tuple(int(v) for v in integers) if isinstance(integers, tuple) else (int(integers),)
            )
        if index is not None and self.has(index):
            array = self.require_known(index, f"`{name}`")
            return tuple(int(v) for v in np.ravel(array))
        return None if default is None else tuple(default)

    def number(self, name: str, index: int | None, default: float) -> float:
        """A number that is an attribute in some versions and an operand in others."""
        if name in self.attributes:
            return float(self.attributes[name])
        if index is not None and self.has(index):
            array = self.require_known(index, f"`{name}`")
            return float(np.ravel(array)[0]) if array.size else default
        return default

    def axis(self, name: str = "axis", default: int = 0, rank: int | None = None) -> int:
        """An axis, counted from the front."""
        size = len(self.shape(0)) if rank is None else rank
        found = int(self.attribute(name, default))
        if not -max(size, 1) <= found < max(size, 1):
            raise Unsound(f"`{name}` is {found}, the tensor has {size} axes")
        return found % size if size else 0

    # The module

    def add(self, opcode: str, *values: int, **attributes: object) -> int:
        """An operation; one that does not fit is the node's fault."""
        try:
            return self.builder.add(opcode, *values, **attributes)
        except InputError as error:
            raise _refusal_of(error) from None

    def reshape(self, value: int, shape: Sequence[int]) -> int:
        """The same elements under another shape."""
        if self.builder.type_of(value).shape == tuple(shape):
            return value
        return self.add("Reshape", value, new_shape=tuple(shape))

    def transpose(self, value: int, permutation: Sequence[int]) -> int:
        """The axes in another order."""
        rank = self.builder.type_of(value).rank
        if list(permutation) == list(range(rank)):
            return value
        if sorted(permutation) != list(range(rank)):
            raise Unsound(f"{list(permutation)} is no order of {rank} axes")
        return self.add("Transpose", value, permutation=tuple(permutation))

    def cast(self, value: int, dtype: str) -> int:
        """The same values in another type."""
        if self.builder.type_of(value).dtype == dtype:
            return value
        return self.add("Cast", value, to=dtype)


# Rules of Core IR that are narrower than ONNX's: which element types an operation is for, and how
# large a tensor may be. What breaks any other rule breaks ONNX's own too.
_NARROWER = {
    **dict.fromkeys(("NCR01", "BIN02", "MAT04", "UNA01", "UNA02", "UNA03", "UNA04"), CAST),
    **dict.fromkeys(("MOD12", "MOD13"), SMALLER),
}


_TYPE = re.compile(r"tensor<([^<>]*)>")


def describe_error(error: InputError) -> str:
    """What the builder says, types spelled as in our own messages."""
    return _TYPE.sub(r"\1", "; ".join(d.message for d in error.diagnostics))


def _refusal_of(error: InputError) -> Unsupported | Unsound:
    """What a rule of Core IR says about the node that an operation was made for."""
    found = error.diagnostics
    told = describe_error(error)
    remedies = [_NARROWER[d.code] for d in found if d.code in _NARROWER]
    return Unsupported(told, remedies[0]) if len(remedies) == len(found) else Unsound(told)


def _unsupported_elements(array: Array) -> Unsupported:
    kind = dtype_title(array.dtype)
    held = "text" if kind == "STRING" else f"elements of type {kind}"
    remedy = "turn text into numbers before the model" if kind == "STRING" else CAST
    return Unsupported(f"an operand holds {held}, which Core IR lacks", remedy)


def dtype_title(dtype: np.dtype[Any]) -> str:
    """What an element type of arrays is called: by Core IR, else by ONNX."""
    try:
        return dtype_name(dtype)
    except ValueError:
        pass
    try:
        kind = onnx.helper.np_dtype_to_tensor_dtype(dtype)
        return str(onnx.TensorProto.DataType.Name(kind))
    except (KeyError, ValueError, TypeError):
        return "STRING" if dtype.kind in "OSU" else str(dtype)


def describe_tensor(tensor: Array | TensorType) -> str:
    """The type of a tensor for a message, such as `f32[2, 3]`."""
    name = dtype_title(tensor.dtype) if isinstance(tensor, np.ndarray) else tensor.dtype
    return f"{name}{list(tensor.shape)}"

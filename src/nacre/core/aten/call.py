"""One call as its handler sees it: arguments by their names in ATen, and a module to add to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nacre.base.diagnostics import InputError
from nacre.base.elements import GRAPH_TYPES
from nacre.core.aten.promotion import common_type
from nacre.core.aten.remedies import NOT_EMPTY, OTHERWISE
from nacre.core.builder import Builder
from nacre.core.module import TensorType
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array, Literal

_ROOM = 1 << 31  # bytes of a constant that a call asks for, where nobody says how many
_MOST_OPERATIONS = 1 << 14  # that one call may become
_MAKING = 2 * 8  # bytes an element while a constant is made: in f64, and in its own type


class TooLarge(Unsupported):
    """A call whose results, or what it needs on the way to them, take too many bytes."""

    def __init__(self, bytes_: int) -> None:
        super().__init__(f"{bytes_:,} bytes are needed")
        self.bytes = bytes_


@dataclass(frozen=True, slots=True)
class Value:
    """A value of the module. A type of its own: plain integers are arguments."""

    id: int


class ConstantTensor(ABC):
    """A tensor whose elements are known, and which becomes a constant when somebody asks."""

    @property
    @abstractmethod
    def type(self) -> TensorType:
        """Its type; Unsupported where Core IR has none."""

    @abstractmethod
    def value(self, dtype: str | None = None) -> int:
        """The constant that it is, of a type if it can be had so."""

    @abstractmethod
    def elements(self) -> Array:
        """Its elements."""

    @abstractmethod
    def transpose(self) -> ConstantTensor:
        """The same with its last two axes changed."""


Tensor = Value | ConstantTensor
Argument = Any  # a tensor, an array, a number, a string, a tuple of them, or None
Elements = Callable[[int], Array | None]


class AtenCall:
    """A call with its arguments. Handlers ask it and add operations to the module through it."""

    def __init__(
        self,
        call: str,
        arguments: Mapping[str, Argument],
        builder: Builder,
        elements: Elements | None = None,
        room: int = _ROOM,
    ) -> None:
        self.call = call
        self._room = room
        self._start = builder.count
        self.name = call.partition(".")[0]
        self.builder = builder
        self._arguments = arguments
        self._elements = elements or self._literal

    # Arguments

    def get(self, name: str, default: Argument = None) -> Argument:
        """An argument; the default stands also for None."""
        found = self._arguments.get(name)
        return default if found is None else found

    def has(self, name: str) -> bool:
        """Whether an argument is given and not null."""
        return self._arguments.get(name) is not None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arguments, in order."""
        return tuple(self._arguments)

    def integer(self, name: str, default: int | None = None) -> int:
        """An argument that is an integer."""
        found = self.get(name, default)
        if isinstance(found, Tensor):
            raise Unsupported(f"`{name}` is computed when the model runs", OTHERWISE)
        if found is None or int(found) != found:
            raise Unsupported(f"`{name}` is no integer")
        return int(found)

    def integers(self, name: str) -> tuple[int, ...]:
        """An argument that is several integers; one alone counts as a list."""
        found = self.get(name, ())
        items = found if isinstance(found, tuple) else (found,)
        if not all(isinstance(item, int | float) and int(item) == item for item in items):
            raise Unsupported(f"`{name}` has something that is no integer")
        return tuple(int(item) for item in items)

    def number(self, name: str, default: float | None = None) -> float:
        """An argument that is a number."""
        found = self.get(name, default)
        if not isinstance(found, int | float):
            raise Unsupported(f"`{name}` is no number")
        return found

    def value(self, name: str, dtype: str | None = None) -> int:
        """An argument as a value of the module, of a type if one is named."""
        return self.as_value(self.get(name), dtype, name)

    def as_value(
        self, argument: Argument, dtype: str | None = None, name: str = "an operand"
    ) -> int:
        """A tensor, an array or a number as a value of the module."""
        if isinstance(argument, Tensor):
            value = argument.id if isinstance(argument, Value) else argument.value(dtype)
            return value if dtype is None else self.cast(value, dtype)
        if isinstance(argument, np.ndarray):
            return self.constant(argument, dtype)
        if isinstance(argument, bool | int | float):
            return self.scalar(argument, dtype or number_type(argument))
        raise Unsupported(f"`{name}` is no tensor")

    def shape_of(self, name: str) -> tuple[int, ...]:
        """The shape of an argument; a number has none."""
        found = self.get(name)
        return self.tensor_type(found).shape if isinstance(found, Tensor) else ()

    def dtype_of(self, name: str) -> str:
        """The element type of an argument."""
        found = self.get(name)
        return self.tensor_type(found).dtype if isinstance(found, Tensor) else number_type(found)

    def common_type_of(self, *names: str) -> str:
        """The element type in which ATen computes with these arguments."""
        return self.common_type([self.get(name) for name in names])

    def common_type(self, arguments: Sequence[Argument]) -> str:
        """The element type in which ATen computes with tensors and numbers."""
        return common_type([self.tensor_type(f) if isinstance(f, Tensor) else f for f in arguments])

    def tensor_type(self, tensor: Tensor) -> TensorType:
        """The type of a tensor among the arguments."""
        return self.type_of(tensor.id) if isinstance(tensor, Value) else tensor.type

    def axis(self, name: str = "dim", of: str = "self", default: int = 0, extra: int = 0) -> int:
        """An axis, counted from the front."""
        rank = max(len(self.shape_of(of)) + extra, 1)
        return as_axis(self.integer(name, default), rank, name)

    def elements(self, argument: Argument) -> Array | None:
        """The elements of a tensor or a number, where they are known."""
        if isinstance(argument, Value):
            return self._elements(argument.id)
        return argument.elements() if isinstance(argument, ConstantTensor) else np.asarray(argument)

    def _literal(self, value: int) -> Array | None:
        """The elements of a constant of the module."""
        data = self.builder.operation(value).attributes.get("data")
        return data.array if isinstance(data, Literal) else None

    # The module

    def type_of(self, value: int) -> TensorType:
        """The type of a value."""
        return self.builder.type_of(value)

    def scalar(self, number: float, dtype: str) -> int:
        """A constant of rank 0; 1 and 1.0 are one of floats."""
        is_float = GRAPH_TYPES[dtype].kind == "float"
        return self.constant(np.array(float(number) if is_float else number), dtype)

    def constant(self, array: Array, dtype: str | None = None) -> int:
        """A constant."""
        try:
            return self.builder.constant(array, dtype, copy=False)
        except (InputError, ValueError) as error:
            raise Unsupported(_messages(error), OTHERWISE) from None

    def fill(self, number: float, shape: Sequence[int], dtype: str) -> int:
        """One number everywhere."""
        require_elements(shape)
        return self.broadcast_to(self.scalar(number, dtype), shape)

    def require_affordable(self, shape: Sequence[int]) -> int:
        """How many elements a constant would have; a file must not fill the memory by asking."""
        count = require_elements(shape)
        if count * _MAKING > self._room:
            raise TooLarge(count * _MAKING)
        return count

    def require_operations(self, count: int) -> None:
        """That so many more can be added; who adds many asks before the first."""
        if self.builder.count - self._start + count > _MOST_OPERATIONS:
            raise Unsupported(f"it takes more than {_MOST_OPERATIONS:,} operations")

    def add(self, opcode: str, *values: int, **attributes: object) -> int:
        """An operation; one that does not fit is the call's fault."""
        self.require_operations(1)
        try:
            return self.builder.add(opcode, *values, **attributes)
        except (InputError, ValueError, OverflowError) as error:
            raise Unsupported(_messages(error), OTHERWISE) from None

    def binary(self, op: str, a: int, b: int) -> int:
        """Two values element by element."""
        return self.add("BinOp", a, b, op=op)

    def unary(self, op: str, x: int) -> int:
        """A function of each element."""
        return self.add("Unary", x, op=op)

    def reshape(self, value: int, shape: Sequence[int]) -> int:
        """The same elements under another shape."""
        if self.type_of(value).shape == tuple(shape):
            return value
        require_elements([abs(dim) for dim in shape])
        return self.add("Reshape", value, new_shape=tuple(shape))

    def transpose(self, value: int, permutation: Sequence[int]) -> int:
        """The axes in another order."""
        if list(permutation) == list(range(self.type_of(value).rank)):
            return value
        return self.add("Transpose", value, permutation=tuple(permutation))

    def broadcast_to(self, value: int, shape: Sequence[int]) -> int:
        """Broadcast to a shape."""
        if self.type_of(value).shape == tuple(shape):
            return value
        return self.add("Broadcast", value, shape=tuple(shape))

    def cast(self, value: int, dtype: str) -> int:
        """The same values in another type; a number is true where it is not 0."""
        found = self.type_of(value).dtype
        if found == dtype:
            return value
        if dtype == "bool":
            return self.add("Compare", value, self.scalar(0, found), op="Ne")
        return self.add("Cast", value, to=dtype)

    def as_float(self, value: int) -> int:
        """A value that functions of reals are for: integers become f32."""
        is_float = GRAPH_TYPES[self.type_of(value).dtype].kind == "float"
        return value if is_float else self.cast(value, "f32")


def number_type(number: object) -> str:
    """The element type of a number alone."""
    if isinstance(number, bool):
        return "bool"
    return "i64" if isinstance(number, int) else "f32"


def as_axis(axis: int, rank: int, name: str = "dim") -> int:
    """An axis counted from the front."""
    if not -rank <= axis < rank:
        raise Unsupported(f"`{name}` is {axis}, expected {-rank} to {rank - 1}")
    return axis % rank


def require_elements(shape: Sequence[int]) -> int:
    """How many elements a tensor of that shape has; Unsupported where it has none."""
    count = 1
    for dim in shape:
        if dim < 1:
            reason = f"the shape {list(shape)} has no elements; Core IR has no empty tensors"
            raise Unsupported(reason, NOT_EMPTY)
        count *= dim
    return count


def _messages(error: Exception) -> str:
    if isinstance(error, InputError):
        return "; ".join(d.message for d in error.diagnostics)
    return str(error)


class Number:
    """A result that is a number of the program, not a tensor."""

    __slots__ = ("number",)

    def __init__(self, number: Argument) -> None:
        self.number = number


# A result that few want is made when somebody asks for it.
LazyValue = Callable[[], int]
# A value of the module, one for each result, or what a call gives that is no tensor.
Result = int | Number | Sequence[int | LazyValue]
Handler = Callable[[AtenCall], Result]


def ready_values(results: Sequence[int | LazyValue]) -> list[int]:
    """The results that are there at once."""
    return [value for value in results if isinstance(value, int)]

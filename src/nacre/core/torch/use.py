"""One node as its handler sees it: arguments by their names in ATen, a result type, a builder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nacre.base.diagnostics import InputError
from nacre.core.importing.derivations import Key
from nacre.core.importing.model_builder import Emit, ModelBuilder
from nacre.core.importing.origins import Span, span_of
from nacre.core.module import TensorType
from nacre.core.torch.elements import array_of, dtype_of, element_name
from nacre.core.torch.library import torch
from nacre.core.torch.remedies import NEWER, NOT_EMPTY, OTHERWISE
from nacre.core.unsupported import Unsupported


@dataclass(frozen=True, slots=True)
class Value:
    """A value of the module. A type of its own: plain integers are arguments."""

    id: int


# A tensor of the graph: a torch.Tensor, where its elements are known, else a value.
Tensor = Any


@dataclass(eq=False)
class Constants:
    """Tensors that became constants. One that is used twice, as tied weights, is one constant."""

    builder: ModelBuilder
    fixed: set[str] = field(default_factory=set)  # names that are no part of the model's state
    _made: dict[Key, int] = field(default_factory=dict)
    _kept: list[Any] = field(default_factory=list)  # an address is only its own while it lives

    def value(self, tensor: Any) -> int:  # noqa: ANN401 - torch.Tensor
        """A tensor as a value of the module."""
        if tensor.numel() == 0:
            raise Unsupported("an operand has no elements; Core IR has no empty tensors", NOT_EMPTY)
        name = element_name(tensor.dtype)
        key = _key(tensor)
        if key not in self._made:
            self._kept.append(tensor)
            found = self.builder.derivations.value(key, self.builder)
            if found is None:
                names = self.names_of(tensor)
                found = self.builder.constant(array_of(tensor), name, names=names)
            self._made[key] = found
        return self._made[key]

    def is_derived(self, tensor: Any) -> bool:  # noqa: ANN401 - torch.Tensor
        """Whether a tensor was computed from a parameter."""
        return _key(tensor) in self.builder.derivations

    def is_changeable(self, tensor: Any) -> bool:  # noqa: ANN401 - torch.Tensor
        """Whether a tensor is a float parameter, which training changes, or follows from one."""
        if tensor.layout != torch().strided:
            return False
        owners = self.builder.origins.owners(_span(tensor)) if tensor.is_floating_point() else ()
        return self.is_derived(tensor) or not self.fixed.issuperset(owners)

    def add_derived(self, tensor: Any, sources: Sequence[Any], emit: Emit) -> None:  # noqa: ANN401
        """A tensor that was computed, from which others, and how a module computes it."""
        if isinstance(tensor, torch().Tensor) and tensor.layout == torch().strided:
            operands = [_key(source) for source in sources]
            self.builder.derivations.add(_key(tensor), tensor, operands, emit)

    def add_parameter(self, tensor: Any, names: tuple[str, ...]) -> None:  # noqa: ANN401
        """A tensor that has names in the model, or is a copy of one that has."""
        if isinstance(tensor, torch().Tensor) and tensor.layout == torch().strided:
            self.builder.origins.add(tensor, _span(tensor), names)

    def names_of(self, tensor: Any) -> tuple[str, ...]:  # noqa: ANN401 - torch.Tensor
        """The names of the parameter that a tensor is, or lays out anew."""
        if tensor.layout != torch().strided:
            return ()
        return self.builder.origins.of(_span(tensor))


def _key(tensor: Any) -> Key:  # noqa: ANN401 - torch.Tensor
    return tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), str(tensor.dtype)


def _span(tensor: Any) -> Span:  # noqa: ANN401 - torch.Tensor
    itemsize: int = tensor.element_size()
    strides = [stride * itemsize for stride in tensor.stride()]
    return span_of(tensor.data_ptr(), tensor.shape, strides, itemsize)


class AtenCall:
    """A node with its arguments. Handlers ask it and add operations to the module through it.

    `metas` are the arguments as PyTorch knows them without elements, for questions of types.
    """

    def __init__(
        self,
        name: str,
        arguments: Mapping[str, Any],
        metas: Mapping[str, Any],
        result: Any,  # noqa: ANN401 - what the node gives: fake tensors
        constants: Constants,
    ) -> None:
        self.name = name
        self.metas = metas
        self.result = result
        self.constants = constants
        self.builder = constants.builder
        self._arguments = arguments

    # What the node gives

    @property
    def _first(self) -> Any:  # noqa: ANN401 - a fake tensor
        return self.result[0] if isinstance(self.result, tuple | list) else self.result

    @property
    def dtype(self) -> str:
        """The element type of the (first) result."""
        return element_name(self._first.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the (first) result."""
        return tuple(int(dim) for dim in self._first.shape)

    # Arguments

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - whatever it is
        """An argument; the default stands also for None."""
        found = self._arguments.get(name)
        return default if found is None else found

    def has(self, name: str) -> bool:
        """Whether an argument is given."""
        return self._arguments.get(name) is not None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arguments, in order."""
        return tuple(self._arguments)

    def known(self, name: str) -> Any:  # noqa: ANN401 - torch.Tensor
        """The elements of an argument, where they are known."""
        found = self.get(name)
        return None if isinstance(found, Value) else found

    def value(self, name: str, dtype: str | None = None) -> int:
        """An argument as a value of the module, of a type if one is named."""
        return self.taken(self.get(name), dtype)

    def taken(self, found: Any, dtype: str | None = None) -> int:  # noqa: ANN401 - tensor or number
        """A tensor or a number as a value of the module."""
        if found is None:
            raise Unsupported("an operand is missing", NEWER)
        if isinstance(found, Value):
            return found.id if dtype is None else self.cast(found.id, dtype)
        if isinstance(found, bool | int | float):
            return self.scalar(found, dtype or self.dtype)
        if not isinstance(found, torch().Tensor):
            kind = type(found).__name__
            raise Unsupported(f"an operand is a {kind}, expected a tensor or a number", OTHERWISE)
        if dtype is not None and element_name(found.dtype) != dtype:
            if self.constants.is_derived(found):
                return self.cast(self.constants.value(found), dtype)
            given, found = found, found.to(dtype_of(dtype))
            self.constants.add_parameter(found, self.constants.names_of(given))
        return self.constants.value(found)

    def shape_of(self, name: str) -> tuple[int, ...]:
        """The shape of an argument."""
        found = self.metas[name]
        return tuple(int(dim) for dim in getattr(found, "shape", ()))

    def dtype_of(self, name: str) -> str:
        """The element type of an argument that is a tensor."""
        return element_name(self.metas[name].dtype)

    def axis(self, name: str = "dim", of: str = "self", extra: int = 0) -> int:
        """An axis, counted from the front."""
        rank = max(len(self.shape_of(of)) + extra, 1)
        return int(self.get(name, 0)) % rank

    # The module

    def type_of(self, value: int) -> TensorType:
        """The type of a value."""
        return self.builder.type_of(value)

    def scalar(self, number: float, dtype: str) -> int:
        """A constant of rank 0."""
        try:
            return self.constants.value(torch().tensor(number, dtype=dtype_of(dtype)))
        except (RuntimeError, OverflowError):
            raise Unsupported(
                f"{number} is outside of the range of {dtype}", "use a number of that type"
            ) from None

    def add(self, opcode: str, *values: int, **attributes: object) -> int:
        """An operation; one that does not fit is the node's fault."""
        try:
            return self.builder.add(opcode, *values, **attributes)
        except InputError as error:
            raise Unsupported("; ".join(d.message for d in error.diagnostics), OTHERWISE) from None

    def binary(self, op: str, a: int, b: int) -> int:
        """Two values element by element."""
        return self.add("BinOp", a, b, op=op)

    def reshaped(self, value: int, shape: Sequence[int]) -> int:
        """The same elements under another shape."""
        if self.type_of(value).shape == tuple(shape):
            return value
        if 0 in shape:
            raise Unsupported("the result has no elements; Core IR has no empty tensors", NOT_EMPTY)
        return self.add("Reshape", value, new_shape=tuple(shape))

    def transposed(self, value: int, permutation: Sequence[int]) -> int:
        """The axes in another order."""
        if list(permutation) == sorted(permutation):
            return value
        return self.add("Transpose", value, permutation=tuple(permutation))

    def broadcast_to(self, value: int, shape: Sequence[int]) -> int:
        """Broadcast to a shape."""
        if self.type_of(value).shape == tuple(shape):
            return value
        return self.add("Broadcast", value, shape=tuple(shape))

    def cast(self, value: int, dtype: str) -> int:
        """The same values in another type."""
        if self.type_of(value).dtype == dtype:
            return value
        return self.add("Cast", value, to=dtype)


# One tensor, one for each output, or a number. A function makes an output that few models use.
Handler = Callable[[AtenCall], "int | Tensor | Sequence[int | Tensor]"]

"""Tensors of PyTorch that become constants: one that is used twice is one, and keeps its names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from nacre.core.aten.call import ConstantTensor
from nacre.core.aten.remedies import NOT_EMPTY
from nacre.core.importing.derivations import Key
from nacre.core.importing.model_builder import Emit, ModelBuilder
from nacre.core.importing.origins import Span, span_of
from nacre.core.module import TensorType
from nacre.core.torch.elements import array_of, dtype_of, element_name
from nacre.core.torch.library import torch
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array


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
            value = self.builder.derivations.value(key, self.builder)
            if value is None:
                names = self.names_of(tensor)
                value = self.builder.constant(array_of(tensor), name, names=names)
            self._made[key] = value
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

    def is_shared(self, tensor: Any) -> bool:  # noqa: ANN401 - torch.Tensor
        """Whether a tensor is a parameter that stays one, whose layouts the module computes."""
        return self.builder.is_shared(_span(tensor))

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


@dataclass(frozen=True, slots=True)
class KnownTensor(ConstantTensor):
    """A tensor of PyTorch as an argument of a call."""

    tensor: Any  # torch.Tensor
    constants: Constants

    @property
    def type(self) -> TensorType:
        """Its type; Unsupported where Core IR has none."""
        return TensorType(element_name(self.tensor.dtype), tuple(self.tensor.shape))

    def value(self, dtype: str | None = None) -> int:
        """The constant that it is, in another type too, unless operations compute it."""
        found, constants = self.tensor, self.constants
        if dtype is not None and self.type.dtype != dtype and not constants.is_derived(found):
            if constants.is_changeable(found) and constants.is_shared(found):
                return constants.builder.add("Cast", constants.value(found), to=dtype)
            found = found.to(dtype_of(dtype))
            constants.add_parameter(found, constants.names_of(self.tensor))
        return constants.value(found)

    def elements(self) -> Array:
        """Its elements."""
        return array_of(self.tensor)

    def transpose(self) -> KnownTensor:
        """The same with its last two axes changed."""
        turned, constants = self.tensor.mT, self.constants
        if constants.is_changeable(self.tensor) and constants.is_shared(self.tensor):
            constants.add_derived(turned, [self.tensor], self._emit_transpose)
        return KnownTensor(turned, constants)

    def _emit_transpose(self, builder: ModelBuilder) -> int:
        *order, rows, columns = range(self.tensor.dim())
        value = self.constants.value(self.tensor)
        return builder.add("Transpose", value, permutation=(*order, columns, rows))

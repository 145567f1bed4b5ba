"""A primitive and one use of it: types and attributes known, arrays still to come.

A machine binds a primitive once per use (`Primitive.bind`) and then runs the result on as many
arrays as it likes: everything that does not depend on values is worked out at binding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from nacre.base.elements import ElementType
from nacre.kernels.interface.shapes import Dims

Array = npt.NDArray[Any]
Attributes = Mapping[str, Any]  # ints, floats, booleans, strings, and tuples of ints

_NO_ATTRIBUTES: Attributes = MappingProxyType({})


def integers(attributes: Attributes, name: str) -> Dims | None:
    """A list of integers among the attributes; None where there is no such list."""
    values = attributes.get(name)
    if not isinstance(values, tuple | list) or not all(isinstance(v, int) for v in values):
        return None
    return tuple(values)


@dataclass(frozen=True, eq=False)
class Quantization:
    """real = scale * (stored - zero_point), one pair for the tensor or per part of an axis."""

    scale: npt.NDArray[np.float32]  # one entry, or one per channel or group
    zero_point: npt.NDArray[np.int32]
    axis: int | None = None  # counted from the front; None: one pair for the whole tensor
    group_size: int = 1  # neighbours along the axis that share a pair

    def broadcast_parameters(
        self, shape: Dims
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int32]]:
        """Scales and zero points as arrays that broadcast against a tensor of that shape."""
        if self.axis is None:
            return self.scale.reshape(()), self.zero_point.reshape(())
        size = shape[self.axis]
        target = tuple(size if i == self.axis else 1 for i in range(len(shape)))
        scale = np.repeat(self.scale, self.group_size)[:size]
        zero_point = np.repeat(self.zero_point, self.group_size)[:size]
        return scale.reshape(target), zero_point.reshape(target)

    def equals(self, other: Quantization) -> bool:
        """Whether both give every stored value the same meaning."""
        return (
            self.axis == other.axis
            and self.group_size == other.group_size
            and np.array_equal(self.scale, other.scale)
            and np.array_equal(self.zero_point, other.zero_point)
        )


@dataclass(frozen=True, eq=False)
class TensorType:
    """What is known of an operand before its values: `i4` values travel as int8 arrays."""

    elem: ElementType
    shape: Dims
    quant: Quantization | None = None

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The type of the arrays that carry it."""
        return np.dtype(np.int8) if self.elem.bits < 8 else self.elem.dtype

    @property
    def count(self) -> int:
        """How many elements it has."""
        return prod(self.shape)


@dataclass(frozen=True, eq=False, slots=True)
class Constant:
    """The values of an input that are known before any run.

    Integers may be stored in a narrower type than the input has, less their zero points. A run is
    then given what is stored, not the values, and has to go by what is known.
    """

    stored: Array
    may_be_widened: bool = (
        False  # used so often that a run may keep them in the type it computes in
    )
    zero: Array | None = None  # integers that broadcast: the values are those stored less these

    def is_narrow(self, dtype: np.dtype[Any]) -> bool:
        """Whether what is stored are not the values in the type of the input."""
        return self.zero is not None or self.stored.dtype != dtype

    def values(self, dtype: np.dtype[Any]) -> Array:
        """The values in the type of the input, the very array where it is the one stored."""
        wide = self.stored.astype(dtype, copy=False)
        return wide if self.zero is None else np.subtract(wide, self.zero.astype(dtype))


_NOTHING_KNOWN: Mapping[int, Constant] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Call:
    """One use of a primitive. An optional input that is left out is None."""

    inputs: tuple[TensorType | None, ...]
    outputs: tuple[TensorType, ...]
    attributes: Attributes = field(default_factory=lambda: _NO_ATTRIBUTES)
    ordered: bool = False  # floats in a fixed order of accumulation, the same on every platform
    # Inputs whose values are known already, by their index: every run is given what is stored.
    known: Mapping[int, Constant] = field(default_factory=lambda: _NOTHING_KNOWN)

    def input(self, index: int) -> TensorType:
        """An input that must be there."""
        found = self.inputs[index]
        if found is None:
            raise ValueError(f"input {index} is left out")
        return found

    def has_input(self, index: int) -> bool:
        """Whether an optional input is given."""
        return index < len(self.inputs) and self.inputs[index] is not None

    @property
    def output(self) -> TensorType:
        """The first output."""
        return self.outputs[0]

    @property
    def is_quantized(self) -> bool:
        """Whether every operand carries a quantisation: the op then works on real values."""
        types = (*self.inputs, *self.outputs)
        return all(t is None or t.quant is not None for t in types)


@dataclass(frozen=True, slots=True)
class Fault:
    """What went wrong with values. A fatal one leaves the outputs as they were."""

    kind: Literal["index", "division", "exponent", "wrap", "backend"]
    message: str
    position: Dims | None = None  # of the element
    is_fatal: bool = True


@dataclass(frozen=True, slots=True)
class Work:
    """How much there is to do, in the units that devices count: see docs/numerics.md."""

    macs: int = 0
    elements: int = 0  # elements touched, a pass over n elements counts n
    each: int = 1  # scalar operations an element; a transcendental function takes eight
    functions: int = 0  # of the elements, those that are one: the exp of a softmax

    @property
    def scalar_operations(self) -> int:
        """The same for a unit that does one operation at a time."""
        return self.macs + self.elements * self.each


# Inputs as arrays of the call's dtypes (None where left out), outputs as arrays to be filled.
Run = Callable[[Sequence[Array | None], Sequence[Array]], Fault | None]


@dataclass(frozen=True, slots=True)
class Example:
    """What a primitive is tried on: shapes of inputs, optional ones last, and attributes."""

    shapes: tuple[Dims, ...]
    attributes: Attributes = field(default_factory=lambda: _NO_ATTRIBUTES)


# Small, some of size 1, some odd.
PLAIN_SHAPES: tuple[Dims, ...] = ((9, 11), (1,), (17,), (2, 1, 7))


@dataclass(frozen=True, slots=True)
class Primitive:
    """A primitive in one place: what it computes, what shape it gives, what it costs."""

    name: str
    bind: Callable[[Call], Run]
    shape: Callable[[Sequence[Dims | None], Attributes], list[Dims] | None]  # None: do not fit
    work: Callable[[Call], Work]
    takes_known: bool = False  # whether binding makes use of inputs that are known already
    examples: tuple[Example, ...] = ()  # of an opcode: backends are compared on them

"""An operation that a kernel computes: what whoever registers one says about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from nacre.core.opaque.schemas import OpaqueSchema

# Called as the operation is: arrays for tensors, numbers, strings and tuples for constants.
Kernel = Callable[..., Any]
# Called alike with arrays of which only `shape` and `dtype` count; see `Operation.shape`.
ShapeFunction = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class ArrayType:
    """The type of a result."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """What an array of it takes."""
        count = self.dtype.itemsize
        for dim in self.shape:  # in Python's integers: hostile shapes leave those of NumPy
            count *= dim
        return count

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


# What a call gives: one array, or a list of them, in which None is one that nobody knows.
Types = ArrayType | list[ArrayType | None]


@dataclass(frozen=True)
class Operation:
    """A kernel, and what is known of it.

    - `kernel`: takes the arguments of the call, tensors as NumPy arrays that must not be changed,
      and gives an array, or a list of them
    - `shape`: the type of the result for the same arguments, of whose arrays only `shape` and
      `dtype` count: a shape, which has the element type of the first array, a pair of shape and
      type, or a list of either; without it a file must say the types of results
    - `random`: the kernel is given a `numpy.random.Generator` as `rng=`, which follows from the
      seed of the run
    """

    kernel: Kernel
    shape: ShapeFunction | None = None
    random: bool = False
    # Of our own: files of others have their arguments in this order.
    schema: OpaqueSchema | None = None
    effort: Literal["linear", "cubic"] = "linear"  # in the size of a matrix
    is_kept: bool = True  # PyTorch is not asked to write it by other calls


class WrongShapeError(ValueError):
    """What a shape function gave is no type of results."""


def types_from(given: Any, arrays: Sequence[Any]) -> Types:  # noqa: ANN401 - whatever it gave
    """The types that a shape function gave; WrongShapeError where these are none."""
    if isinstance(given, list):
        return [None if part is None else _type(part, arrays) for part in given]
    return _type(given, arrays)


def _type(given: Any, arrays: Sequence[Any]) -> ArrayType:  # noqa: ANN401 - whatever it gave
    if isinstance(given, ArrayType):
        return given
    if not isinstance(given, tuple):
        kind = type(given).__name__
        raise WrongShapeError(f"a shape function gave a {kind}, expected a shape, or a list")
    is_pair = len(given) == 2 and isinstance(given[0], tuple)
    shape = given[0] if is_pair else given
    if not all(isinstance(dim, int | np.integer) and dim >= 0 for dim in shape):
        raise WrongShapeError(f"a shape function gave {given!r:.60}, which is no shape")
    if not is_pair and not arrays:
        raise WrongShapeError("a shape function gave no element type, and no array has one")
    try:
        dtype = np.dtype(given[1] if is_pair else arrays[0].dtype)
    except TypeError as error:
        raise WrongShapeError(
            f"a shape function gave an element type that is none: {error}"
        ) from None
    return ArrayType(dtype, tuple(int(dim) for dim in shape))

"""Element types of what kernels give: floats of integers, complex of real, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.aten.dtypes import element_type
from nacre.core.opaque.calls import PARTS
from nacre.core.values import Array
from nacre.nac.operations.operation import ArrayType

DType = np.dtype[Any]
_F32 = np.dtype(np.float32)
_WIDE = frozenset({"float64", "complex128"})


def dtype_of(word: str | None, default: DType = _F32) -> DType:
    """The type that a word of PyTorch names; Unsupported where there is none."""
    if word is None:
        return default
    return np.dtype(word) if word in PARTS else GRAPH_TYPES[element_type(word)].dtype


def real_of(dtype: DType) -> DType:
    """The type of the parts of complex numbers; floats as they are, f32 of integers."""
    if dtype.kind in "biu":
        return _F32
    return np.dtype(dtype.char.lower()) if dtype.kind == "c" else dtype


def complex_of(dtype: DType) -> DType:
    """The complex type of a float type."""
    return np.dtype(np.complex128 if dtype.name in _WIDE else np.complex64)


def inexact_of(dtype: DType) -> DType:
    """Floats and complex numbers as they are, f32 of integers."""
    return dtype if dtype.kind == "c" else real_of(dtype)


def inexact(x: Array) -> Array:
    """An array of floats or complex numbers."""
    return x.astype(inexact_of(x.dtype), copy=False)


def like(x: Array, shape: tuple[int, ...], dtype: DType | None = None) -> ArrayType:
    """A result of the floats of an array, or of another type."""
    return ArrayType(inexact_of(x.dtype) if dtype is None else dtype, shape)


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the front; ValueError where there is none."""
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} of {rank}")
    return axis % rank

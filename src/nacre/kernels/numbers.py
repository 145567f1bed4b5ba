"""Rounding, saturation and widening: the few ways in which a value becomes another type's."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nacre.base.elements import ElementType
from nacre.kernels.call import Array

Float32 = npt.NDArray[np.float32]


def widened(values: Array) -> Float32:
    """Floats of any width up to 32 bits as f32; exact."""
    return values if values.dtype == np.float32 else values.astype(np.float32)


def holder(element: ElementType) -> np.dtype[Any]:
    """The array type that carries an element type: `i4` travels as int8."""
    return np.dtype(np.int8) if element.bits < 8 else element.dtype


def saturated(values: Array, element: ElementType) -> Array:
    """Integers stopped at the ends of an integer type."""
    return np.clip(values, element.lowest, element.highest).astype(holder(element))


def wrapped(values: Array, element: ElementType) -> Array:
    """Integers modulo 2 to the width of an integer type."""
    if element.bits < 8:
        shift = 8 - element.bits
        low = values.astype(np.int8)  # keeps the low bits
        return np.left_shift(low, shift) >> shift
    return values.astype(holder(element))


def rounded_even(values: Array) -> Array:
    """To the nearest integer, halves to the even one; still floats."""
    return np.rint(values)


def real_to_integer(values: Array, element: ElementType) -> Array:
    """Floats that are whole numbers as integers: saturates, and NaN gives 0."""
    # In f64 both ends of every type up to 32 bits are exact; f32 would round 2^31 - 1 up.
    wide = values.astype(np.float64, copy=False)
    clipped = np.clip(wide, element.lowest, element.highest)
    return np.where(np.isnan(clipped), 0.0, clipped).astype(holder(element))

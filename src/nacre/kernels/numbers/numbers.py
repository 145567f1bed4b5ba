"""Rounding, saturation and widening: the few ways in which a value becomes another type's."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nacre.base.elements import ElementType
from nacre.kernels.interface.call import Array
from nacre.kernels.numbers.halves import widen_halves

Float32 = npt.NDArray[np.float32]


def widen_to_f32(values: Array) -> Float32:
    """Floats of any width up to 32 bits as f32; exact."""
    if values.dtype == np.float32:
        return values
    if values.dtype == np.float16:
        return widen_halves(values)
    return values.astype(np.float32)


def carrier_dtype(element: ElementType) -> np.dtype[Any]:
    """The array type that carries an element type: `i4` travels as int8."""
    return np.dtype(np.int8) if element.bits < 8 else element.dtype


def saturate_to(values: Array, element: ElementType) -> Array:
    """Integers stopped at the ends of an integer type."""
    return np.clip(values, element.lowest, element.highest).astype(carrier_dtype(element))


def wrap_to(values: Array, element: ElementType) -> Array:
    """Integers modulo 2 to the width of an integer type."""
    if element.bits < 8:
        shift = 8 - element.bits
        low = values.astype(np.int8)  # keeps the low bits
        return np.left_shift(low, shift) >> shift
    return values.astype(carrier_dtype(element))


def round_even(values: Array) -> Array:
    """To the nearest integer, halves to the even one; still floats."""
    return np.rint(values)


def real_to_integer(values: Array, element: ElementType) -> Array:
    """Floats that are whole numbers as integers: saturates, and NaN gives 0."""
    # f32 holds both ends of a type of up to 16 bits, but would round 2^31 - 1 up.
    wide = values if element.bits <= 16 else values.astype(np.float64, copy=False)
    clipped: Array = np.minimum(np.maximum(wide, element.lowest), element.highest)
    unknown = np.isnan(clipped)
    if unknown.any():
        clipped = np.where(unknown, 0, clipped)
    made = clipped.astype(carrier_dtype(element))
    if element.bits == 64:
        # f64 has no 2^63 - 1: what stops at 2^63 would wrap.
        made[wide >= float(element.highest)] = element.highest
    return made


def real_to_wrapped(values: Array, element: ElementType) -> Array:
    """Floats that are whole numbers modulo 2 to an integer type's width; NaN, infinities give 0."""
    wide = values.astype(np.float64, copy=False)
    rest = np.fmod(wide, 2.0**element.bits)  # exact, and NaN for infinities
    return wrap_to(np.where(np.isnan(rest), 0.0, rest).astype(np.int64), element)

"""Products of matrices of any element type, as the operations of graphs need them.

Floats up to 32 bits are multiplied in f32, f64 in f64; integers exactly, as far as 64 bits reach,
and modulo 2^64 beyond. What is stored is rounded or wrapped once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any

import numpy as np

from nacre.base.elements import ElementType
from nacre.kernels.interface.call import Array, Constant, TensorType
from nacre.kernels.interface.scratch import scratch
from nacre.kernels.numbers.numbers import widen_to_f32
from nacre.kernels.products.core_products import low_bits
from nacre.kernels.products.products import (
    F32_EXACT,
    Plan,
    exact_product,
    plan,
    plan_within,
    same_nan,
)

# The product of matrices [.., M, K] by [.., K, N], written into an array.
Multiply = Callable[[Array, Array, Array], object]

_UP = 1 + 2.0**-30  # makes up for the rounding of sums in f64


@dataclass(frozen=True, eq=False)
class Factors:
    """Two operands in the type that they are multiplied in, and how to multiply parts of them."""

    a: Array
    b: Array
    multiply: Multiply
    sums: np.dtype[Any]  # the type that holds every sum


def sums_dtype(elem: ElementType) -> np.dtype[Any]:
    """The array type of sums of products before they are stored."""
    if elem.is_integer:
        return np.dtype(np.int64)
    return np.dtype(np.float64 if elem.bits > 32 else np.float32)


def factoring(
    elem: ElementType,
    depth: int,
    is_ordered: bool,
    known: Constant | None = None,
    *,
    is_narrow: bool = False,
) -> Callable[[Array, Array], Factors]:
    """How operands of an element type are made ready for sums of `depth` products each.

    The second one may be known ahead. Narrow sums of integers have the least type that holds them.
    """
    dtype = sums_dtype(elem)
    if elem.is_integer:
        weights = None if known is None else IntegerWeights.of(known, depth)
        return partial(_integer_factors, depth=depth, known=weights, is_narrow=is_narrow)
    wide = widening(elem)
    multiply: Multiply = _multiply_in_order if is_ordered else np.matmul
    if known is not None:
        ready = _for_blas(wide(known.stored))
        return lambda a, b: Factors(_for_blas(wide(a)), ready, multiply, dtype)
    return lambda a, b: Factors(_for_blas(wide(a)), _for_blas(wide(b)), multiply, dtype)


def widening(elem: ElementType) -> Callable[[Array], Array]:
    """How an operand gets the type of its sums."""
    dtype = sums_dtype(elem)
    return widen_to_f32 if dtype == np.float32 else lambda values: values.astype(dtype, copy=False)


def multiplicands(elem: ElementType) -> Callable[[Array, Array], Factors]:
    """How operands are made ready to be multiplied element by element."""
    wide, dtype = widening(elem), sums_dtype(elem)
    return lambda a, b: Factors(wide(a), wide(b), np.matmul, dtype)


@dataclass(frozen=True, slots=True)
class Extent:
    """How far integer weights reach: the largest absolute value, and the largest sum of them."""

    reach: int
    length: int  # along one sum

    @classmethod
    def of(cls, weights: Array, zero: Array | None = None) -> Extent:
        """Of weights, less their zero points, with a row for each sum.

        They are taken in parts: they may be as large as a model.
        """
        most, longest = 0, 0.0
        for start in range(0, len(weights), 64):
            some = slice(start, start + 64)
            part = weights[some].astype(np.float64)
            if zero is not None:
                part -= zero[some] if zero.ndim else zero
                most = max(most, reach(part))
            longest = max(longest, np.abs(part, out=part).sum(axis=1).max())
        return cls(reach(weights) if zero is None else most, ceil(longest * _UP))

    def plan(self, x: Array, depth: int) -> Plan:
        """How to get the sums of products with x."""
        return plan_within(depth, reach(x), self.reach, self.length)


@dataclass(frozen=True, eq=False)
class IntegerWeights:
    """Weights that are known, as they are stored: a row for each sum, less zero points."""

    stored: Array  # [sums, depth]
    zero: Array | None  # one number, or [sums, 1]
    extent: Extent  # of the values

    @classmethod
    def of(cls, known: Constant, depth: int) -> IntegerWeights:
        """Of an input whose first axis has the sums; floats where it may be widened."""
        stored, zero = known.stored.reshape(-1, depth), known.zero
        if zero is not None:
            zero = zero.reshape(() if zero.size == 1 else (-1, 1))
        made = cls(stored, zero, Extent.of(stored, zero))
        if not known.may_be_widened or made.extent.reach > F32_EXACT:
            return made
        floats = stored.astype(np.float32)
        if zero is not None:
            np.subtract(floats, zero.astype(np.float32), out=floats)
        return cls(floats, None, made.extent)

    def may_centre_late(self, x: Array) -> bool:
        """Whether zero points can be taken from sums: they stay exact in f32 without that too.

        Of a row no partial sum with bytes above 0 is larger than with what is positive in it.
        """
        if self.zero is None or self.stored.dtype.name not in ("int8", "uint8"):
            return False
        absolute = np.abs(x, dtype=np.int64).sum(axis=1)
        if self.stored.dtype == np.int8:
            return 128 * int(absolute.max()) <= F32_EXACT
        signed = np.abs(x.sum(axis=1, dtype=np.int64))
        return 255 * int((absolute + signed).max()) // 2 <= F32_EXACT

    def values(self, some: slice, dtype: np.dtype[Any]) -> Array:
        """The values of some sums in the type of a plan, until the same is asked for again."""
        if self.stored.dtype == dtype and self.zero is None:
            return self.stored[some]
        made = _copy_to_scratch("weights", self.stored[some], dtype)
        if self.zero is not None:
            zero = self.zero[some] if self.zero.ndim else self.zero
            np.subtract(made, zero.astype(dtype), out=made)
        return made


_EVERY = slice(None)


def _integer_factors(
    a: Array, b: Array, depth: int, known: IntegerWeights | None, is_narrow: bool
) -> Factors:
    chosen = plan(depth, reach(a), reach(b)) if known is None else known.extent.plan(a, depth)
    is_whole = is_narrow and chosen.result == chosen.dtype
    return Factors(
        _copy_to_scratch("left", a, chosen.dtype),
        _copy_to_scratch("right", b, chosen.dtype)
        if known is None
        else known.values(_EVERY, chosen.dtype).reshape(b.shape),
        np.matmul if is_whole else partial(_multiply_exactly, chosen=chosen),
        chosen.result if is_narrow else np.dtype(np.int64),
    )


def _copy_to_scratch(use: str, values: Array, dtype: np.dtype[Any]) -> Array:
    room = scratch(use, values.shape, dtype)
    np.copyto(room, values, casting="unsafe")
    return room


def reach(values: Array) -> int:
    """The largest absolute value."""
    most, least = np.maximum.reduce(values, axis=None), np.minimum.reduce(values, axis=None)
    return max(int(most), -int(least))


def _multiply_exactly(a: Array, b: Array, out: Array, chosen: Plan) -> None:
    out[...] = exact_product(a, b, chosen)


def _multiply_in_order(a: Array, b: Array, out: Array) -> None:
    """Each sum from +0 on in ascending order of k, rounded after every step."""
    out.fill(0)
    term = np.empty_like(out)
    for k in range(a.shape[-1]):
        np.multiply(a[..., k, None], b[..., k, None, :], out=term)
        np.add(out, term, out=out)


def dense(values: Array) -> Array:
    """The same array, or a copy where its elements do not follow each other."""
    if values.flags.c_contiguous and values.flags.aligned:
        return values
    return np.array(values, order="C")


def _for_blas(values: Array) -> Array:
    """The same array, or a copy where BLAS could not read it and NumPy would loop instead."""
    if values.flags.aligned and values.ndim > 1:
        (down, across), (height, width), size = (
            values.strides[-2:],
            values.shape[-2:],
            values.itemsize,
        )
        if (across == size and down >= width * size) or (down == size and across >= height * size):
            return values
    return dense(values)


def fill_with_sums(
    y: Array, type_: TensorType, fill: Callable[[Array], None], dtype: np.dtype[Any] | None = None
) -> None:
    """Let a function compute into an output, or into an array from which that is stored once.

    The type of the sums is that of the elements, or a narrower one that holds them all.
    """
    dtype = dtype or sums_dtype(type_.elem)
    if y.dtype == dtype and y.flags.c_contiguous and y.flags.aligned:
        fill(y)
        return
    sums = scratch("sums", type_.shape, dtype)
    fill(sums)
    store_sums(sums, type_.elem, y)


def store_sums(sums: Array, elem: ElementType, y: Array) -> None:
    """Round or wrap sums once. Integers may come as floats that hold them."""
    if not elem.is_integer or elem.bits >= 32:
        np.copyto(y, sums, casting="unsafe")
        return
    y[...] = low_bits(sums.astype(np.int64, copy=False), elem)


def settle(sums: Array, is_ordered: bool) -> None:
    """Give ordered sums one NaN: its bits differ between platforms."""
    if is_ordered and sums.dtype.kind == "f":
        same_nan(sums)

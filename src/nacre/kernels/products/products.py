"""Matrix products: integers exact on float BLAS, floats in f32, floats in a fixed order.

A float type holds every integer up to a limit (f32: 2^24, f64: 2^53). Where the sum of the absolute
products of a dot product stays within it, no partial sum can be rounded, in whatever order BLAS
adds. Longer sums are cut into chunks for which it does, and the chunks are added as integers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from threading import local
from typing import Any

import numpy as np

from nacre.kernels.interface.call import Array, TensorType
from nacre.kernels.numbers.numbers import Float32

Product = Callable[[Array, Array], Array]  # [.., M, K] by [.., K, N]

I32_HIGHEST = (1 << 31) - 1
F32_EXACT = 1 << 24
_F64_EXACT = 1 << 53
_I64_HIGHEST = (1 << 63) - 1
# Shorter chunks cost more in additions of partial sums than the narrower type saves.
_SHORTEST_CHUNK = 32
_WALK_BYTES = 1 << 20  # of a matrix that is read part by part


class _ReadDirection(local):
    """Which way a thread read the last large matrix."""

    is_back = False


_WALK = _ReadDirection()


@dataclass(frozen=True)
class Plan:
    """How to get exact sums of `depth` integer products each."""

    dtype: np.dtype[Any]  # of the operands
    chunk: int  # how many products BLAS may add
    depth: int
    bound: int  # on the absolute value of a sum

    @cached_property
    def result(self) -> np.dtype[Any]:
        """The type of the sums: f32 where one product of matrices is all."""
        if self.dtype == np.float32 and self.chunk >= self.depth:
            return self.dtype
        return np.dtype(np.int32 if self.bound <= I32_HIGHEST else np.int64)

    @cached_property
    def may_leave_i64(self) -> bool:
        """Whether sums are only known modulo 2^64."""
        return self.bound > _I64_HIGHEST

    @cached_property
    def product(self) -> Product:
        """The matrix product of operands of the plan's type."""
        return partial(exact_product, plan=self)


@lru_cache(maxsize=1024)
def plan(depth: int, reach_a: int, reach_b: int, shortest_chunk: int = _SHORTEST_CHUNK) -> Plan:
    """The fastest exact way for operands whose absolute values stay within their reach."""
    largest = max(reach_a * reach_b, 1)
    bound = depth * largest
    for dtype, limit in ((np.float32, F32_EXACT), (np.float64, _F64_EXACT)):
        chunk = limit // largest
        if chunk >= min(depth, shortest_chunk):
            return Plan(np.dtype(dtype), min(chunk, depth), depth, bound)
    return Plan(np.dtype(np.int64), depth, depth, bound)


@lru_cache(maxsize=1024)
def plan_within(depth: int, reach_a: int, reach_b: int, length_b: int) -> Plan:
    """The same where the absolute values of b along a sum come to `length_b` at most.

    No partial sum is then above `reach_a * length_b`, which may do without chunks.
    """
    whole = plan(1, reach_a, length_b)
    if whole.dtype == np.float32:
        return replace(whole, chunk=depth, depth=depth)
    return plan(depth, reach_a, reach_b)


def zero_points(type_: TensorType) -> Array | None:
    """What is to be taken from stored integers, to be broadcast; None where it is nothing."""
    if type_.quant is None or not np.any(type_.quant.zero_point):
        return None
    return type_.quant.broadcast_parameters(type_.shape)[1]


def reach_of_type(type_: TensorType) -> int:
    """A bound on the absolute values of any tensor of a type, zero points taken off."""
    return _reach(type_, int(type_.elem.lowest), int(type_.elem.highest))


def reach_of_values(type_: TensorType, stored: Array) -> int:
    """The same for these values."""
    return _reach(type_, int(stored.min()), int(stored.max()))


def _reach(type_: TensorType, lowest: int, highest: int) -> int:
    zero = zero_points(type_)
    if zero is None:
        return max(highest, -lowest)
    return max(highest - int(zero.min()), int(zero.max()) - lowest)


def subtract(values: Array, stored: Array, zero: Array | None) -> None:
    """Write stored integers less their zero points into an array of a plan's type."""
    if zero is None:
        values[...] = stored
    elif stored.dtype.itemsize <= 2 and values.dtype != np.int64:
        values[...] = stored
        values -= zero.astype(values.dtype)
    else:
        # 32 bits do not fit into f32; their difference from the zero point may.
        values[...] = np.subtract(stored, zero, dtype=np.int64)


def exact_product(a: Array, b: Array, plan: Plan) -> Array:
    """The product of matrices of integers, which are given in the plan's type."""
    if plan.chunk >= plan.depth:
        is_column = a.ndim == b.ndim == 2 and b.shape[1] == 1 and a.nbytes > _WALK_BYTES
        total: Array = _product_by_column(a, b) if is_column else np.matmul(a, b)
        return total.astype(plan.result, copy=False)
    # Chunks of equal length: the last is not a splinter.
    count = -(-plan.depth // plan.chunk)
    step = -(-plan.depth // count)
    total = np.matmul(a[..., :step], b[..., :step, :]).astype(plan.result)
    for start in range(step, plan.depth, step):
        end = start + step
        total += np.matmul(a[..., start:end], b[..., start:end, :]).astype(plan.result)
    return total


def _product_by_column(a: Array, b: Array) -> Array:
    """A matrix that no cache holds by one column, part by part.

    A recurrence multiplies by the same matrix again and again. Read from the other end every second
    time, it begins with what was read last and is still in the cache.
    """
    out = np.empty((len(a), 1), np.result_type(a, b))
    rows = max(1, _WALK_BYTES * len(a) // a.nbytes)
    parts = range(0, len(a), rows)
    _WALK.is_back = not _WALK.is_back
    for start in reversed(parts) if _WALK.is_back else parts:
        np.matmul(a[start : start + rows], b, out=out[start : start + rows])
    return out


def mark_lost(sums: Array, estimates: Array) -> Array:
    """Sums that are known modulo 2^64, moved out of the range of i32 where they have left that.

    They stay the same modulo 2^32. The estimates are the same sums in f64, whose error is far
    below 2^62: whatever is estimated below that has not left the range of int64.
    """
    low = sums & np.int64(0xFFFF_FFFF)
    return np.where(np.abs(estimates) < 2.0**62, sums, low + np.int64(1 << 33))


def float_product(a: Float32, b: Float32) -> Float32:
    """The product of f32 matrices, in the order that BLAS likes."""
    product: Float32 = np.matmul(_for_blas(a), _for_blas(b))
    return product


def _for_blas(values: Array) -> Array:
    """The same array, or a copy where BLAS could not read it and NumPy would loop instead."""
    if values.flags.c_contiguous and values.flags.aligned:
        return values
    return np.array(values, order="C")


def ordered_product(a: Float32, b: Float32) -> Float32:
    """The product of f32 matrices, each sum from +0 on in ascending order of k.

    Products and sums are rounded one by one, so the result has the same bytes everywhere.
    """
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    total = np.zeros((*batch, a.shape[-2], b.shape[-1]), np.float32)
    term = np.empty_like(total)
    for k in range(a.shape[-1]):
        np.multiply(a[..., k, None], b[..., k, None, :], out=term)
        np.add(total, term, out=total)
    return total


def same_nan(values: Float32) -> Float32:
    """The values with one NaN in the place of all: its bits differ between platforms."""
    values[np.isnan(values)] = np.nan
    return values

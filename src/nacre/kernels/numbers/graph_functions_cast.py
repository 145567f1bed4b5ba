"""`Cast`: the same values in another element type, rounded once.

What becomes an integer from a float is cut towards zero and stops at the ends of the type; NaN
gives 0. Integers wrap, with `saturate` they stop at the ends too. What becomes a float is rounded
to nearest even; beyond the greatest finite value it becomes infinite (NaN in `f8e4m3`, which has
no infinity), with `saturate` that greatest value, infinities too. Everything but 0 becomes true.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nacre.base.elements import ElementType
from nacre.kernels.interface.call import Array, Call, Fault, Run
from nacre.kernels.interface.runs import (
    all_values,
    conversion_run,
    lookup_run,
    present,
    quiet,
    quietly,
    store_run,
)
from nacre.kernels.numbers.numbers import real_to_integer, saturate_to, widen_to_f32
from nacre.kernels.products.core_products import low_bits

Convert = Callable[[Array], Array]

_I64_END = 2.0**63  # one more than the greatest


def bind_cast(call: Call) -> Run:
    """Between any two element types."""
    source, result = call.input(0), call.output
    convert = _conversion(source.elem, result.elem, bool(call.attributes["saturate"]))
    if source.elem.kind == "float" and source.elem.bits <= 16:
        return lookup_run(quietly(lambda: convert(all_values(source.dtype)).astype(result.dtype)))
    if _is_plain(source.elem, result.elem) and not call.attributes["saturate"]:
        return conversion_run
    is_cut = source.elem.kind == "float" and result.elem.is_integer and result.elem.kind != "bool"
    return _truncation_run(result.elem, convert, source.dtype) if is_cut else store_run(convert)


def _truncation_run(result: ElementType, convert: Convert, dtype: np.dtype[Any]) -> Run:
    """Floats cut towards zero as the processor does it, where all of them stay in the type."""
    # Strictly between these, for the ends themselves may have been rounded outwards.
    low, high = dtype.type(result.lowest - 1), dtype.type(result.highest + 1)

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        x, y = present(inputs[0]), outputs[0]
        least, most = np.minimum.reduce(x, axis=None), np.maximum.reduce(x, axis=None)
        if low < least and most < high:  # NaN is neither
            np.copyto(y, x, casting="unsafe")
        else:
            y[...] = convert(x)
        return None

    return quiet(run)


def _is_plain(source: ElementType, result: ElementType) -> bool:
    """Whether NumPy converts in the same way: integers wrap, and become floats in one rounding."""
    if not source.is_integer or source.bits < 8 or result.kind == "bool":
        return False
    return result.bits >= 8 if result.is_integer else result.bits >= 32


def _conversion(source: ElementType, result: ElementType, saturate: bool) -> Convert:
    if result.kind == "bool":
        return lambda x: _widen_small_floats(x) != 0
    if not result.is_integer:
        return _to_float(source, result, saturate)
    if not source.is_integer:
        return lambda x: _saturate_whole(np.trunc(_widen_small_floats(x)), result)
    if saturate and source.kind != "bool":
        # In i64, for the ends of the result need not exist in the source.
        return lambda x: saturate_to(x.astype(np.int64), result)
    return lambda x: low_bits(x, result)


def _widen_small_floats(x: Array) -> Array:
    """Floats of up to 16 bits as f32: NumPy knows no others, and ml_dtypes warns of NaN."""
    return x if x.dtype.kind in "iub" or x.dtype.itemsize > 2 else widen_to_f32(x)


def _saturate_whole(whole: Array, result: ElementType) -> Array:
    """Floats that are whole numbers as integers: saturates, and NaN gives 0."""
    if result.bits <= 32:
        return real_to_integer(whole, result)
    # f64 does not hold the greatest i64, and what is beyond casts to anything.
    is_beyond = ~(np.abs(whole) < _I64_END)  # NaN too
    if not is_beyond.any():
        return whole.astype(np.int64)
    inside = np.where(is_beyond, 0, whole).astype(np.int64)
    ends = np.where(whole > 0, result.highest, np.where(whole < 0, result.lowest, 0))
    return np.where(is_beyond, ends, inside)


def _to_float(source: ElementType, result: ElementType, saturate: bool) -> Convert:
    widen = _widening(source, result)
    if not saturate or (source.is_integer and source.highest <= result.highest):
        return widen  # what is stored is rounded
    is_double = 64 in (source.bits, result.bits) and not source.is_integer
    low, high = (
        quietly(np.array, end, np.float64 if is_double else np.float32)
        for end in (result.lowest, result.highest)
    )
    return lambda x: np.minimum(np.maximum(widen(x), low), high)


def _widening(source: ElementType, result: ElementType) -> Convert:
    """A type from which one more step rounds as if it were the only one."""
    if source.kind == "float" and source.bits <= 32:
        return widen_to_f32
    if result.bits >= 32 or source.kind == "bool":
        return lambda x: x
    # NumPy and ml_dtypes would go by way of f32, and so round twice.
    return lambda x: _round_to_odd_f32(_round_to_odd_f64(x))


def _round_to_odd_f64(x: Array) -> Array:
    """Numbers as f64, integers that have none to the neighbour with an odd last digit.

    That lies on the same side of every narrower float, and of the middle of two, as the number
    itself: rounding again gives what rounding the number would give.
    """
    if x.dtype != np.int64:
        return x.astype(np.float64)
    odd = ((x >> 11) | ((x & 0x7FF) != 0)) << 11  # 53 bits
    is_small = (x > -(1 << 53)) & (x < 1 << 53)
    return np.where(is_small, x, odd).astype(np.float64)


def _round_to_odd_f32(x: Array) -> Array:
    """F64 values as f32, inexact ones to the neighbour with an odd last digit."""
    near = np.asarray(x.astype(np.float32))
    bits = near.view(np.int32)
    bits -= np.abs(near) > np.abs(x)  # towards zero
    bits |= (near != x) & ~np.isnan(x)
    return near

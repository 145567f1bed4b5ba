"""From exact accumulators to the output: bias, i32 wrap, scales, rounding, saturation."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np

from nacre.kernels.interface.call import Array, Fault, TensorType
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.numbers.numbers import Float32, real_to_integer, round_even, saturate_to
from nacre.kernels.products.products import F32_EXACT, I32_HIGHEST

Store = Callable[[Array, Array], None]  # accumulators, the output to be filled

# A scale up to this and any accumulator give a finite product.
_TAME_SCALE = 2.0**90


def requantizer(type_: TensorType, scale: Float32) -> Store:
    """`saturate(rint(float32(acc) * scale) + zero_point)`, the scale being sx * sw / sy."""
    zero = _zero_point(type_)
    is_tame = bool(np.all(np.abs(scale) < _TAME_SCALE)) and type_.elem.bits <= 16
    if not is_tame:
        return _careful_requantizer(type_, scale, zero)
    lowest, highest = np.float32(type_.elem.lowest), np.float32(type_.elem.highest)
    offset = zero.astype(np.float32) if np.any(zero) else None

    def store(sums: Array, y: Array) -> None:
        steps = np.multiply(sums.astype(np.float32, copy=False), scale)
        np.rint(steps, out=steps)
        if offset is not None:
            # Beyond 2^24 this rounds, but such values saturate either way.
            steps += offset
        np.maximum(steps, lowest, out=steps)
        np.minimum(steps, highest, out=steps)
        y[...] = steps

    return store


def _careful_requantizer(type_: TensorType, scale: Float32, zero: Array) -> Store:
    def store(sums: Array, y: Array) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            steps = round_even(sums.astype(np.float32, copy=False) * scale)
        y[...] = _integers(steps, zero, type_)

    return store


def real_quantizer(type_: TensorType) -> Store:
    """`saturate(rint(real / scale) + zero_point)`; without `quant` scale 1 and zero point 0."""
    zero = _zero_point(type_)
    scale = (
        type_.quant.broadcast_parameters(type_.shape)[0]
        if type_.quant is not None
        else np.float32(1)
    )

    def store(reals: Array, y: Array) -> None:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            steps = round_even(reals / scale)
        y[...] = _integers(steps, zero, type_)

    return store


def _integers(steps: Array, zero: Array, type_: TensorType) -> Array:
    # In f64 no sum of a step count and a zero point rounds where it matters; NaN is real 0.
    known = np.nan_to_num(steps.astype(np.float64), nan=0.0)
    return real_to_integer(known + zero, type_.elem)


def _zero_point(type_: TensorType) -> Array:
    if type_.quant is None:
        return np.zeros((), np.int32)
    return type_.quant.broadcast_parameters(type_.shape)[1]


def saturating_store(type_: TensorType) -> Store:
    """The accumulators themselves, stopped at the ends of the output's type."""

    def store(sums: Array, y: Array) -> None:
        y[...] = saturate_to(sums, type_.elem)

    def store_unchanged(sums: Array, y: Array) -> None:
        y[...] = sums

    return store_unchanged if type_.elem.name == "i32" else store


def biased_reals(sums: Float32, bias: Array) -> Float32 | None:
    """`float32(sum + bias)` where adding in f32 gives just that; else None.

    Sums are below 2^24; with a bias below 2^24 both are exact and the addition rounds once.
    """
    reals = bias.astype(np.float32)
    if _magnitude_bound(reals) > F32_EXACT and _largest_magnitude(bias) > F32_EXACT:
        return None
    return np.add(sums, reals)


def _magnitude_bound(reals: Float32) -> float:
    """A number that no absolute value is above, in one step of BLAS: most biases are small."""
    # The sum of squares loses far less to rounding than is added to it.
    return sqrt(float(np.vdot(reals, reals))) * 1.01 + 1


def _largest_magnitude(bias: Array) -> int:
    """The largest absolute value."""
    return max(-int(bias.min()), int(bias.max()))


def accumulate(sums: Array, bias: Array | None, bound: int) -> tuple[Array, Fault | None]:
    """Sums and bias as i32, wrapped where they leave it; the sums stay within the bound."""
    if bias is not None:
        length = _magnitude_bound(bias.astype(np.float32))
        bound += int(length) if bound + length <= I32_HIGHEST else _largest_magnitude(bias)
    if bound <= I32_HIGHEST:
        narrow = sums.astype(np.int32, copy=False)
        return (narrow if bias is None else narrow + bias.astype(np.int32)), None
    wide = sums.astype(np.int64, copy=False)
    return _wrap_sums(wide if bias is None else wide + bias)


def _wrap_sums(wide: Array) -> tuple[Array, Fault | None]:
    narrow = wide.astype(np.int32)
    lost = narrow != wide
    count = int(np.count_nonzero(lost))
    if count == 0:
        return narrow, None
    position: Dims = tuple(int(i) for i in np.unravel_index(int(np.argmax(lost)), lost.shape))
    others = f", and {count - 1} more" if count > 1 else ""
    message = f"the i32 accumulator wrapped to {int(narrow[position])}{others}"
    return narrow, Fault("wrap", message, position, is_fatal=False)

"""How an f32 tensor is stored in each quantisation, to the bit as the format's practice does it.

Scales are the largest absolute value over 127, in f32; quotients are rounded to even. Groups of 4
bits, which are ours, have a scale and a minimum that fit them best, as far as rounding and fitting
by turns finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from nacre.core.values import Array
from nacre.nac.format.values import Tensor
from nacre.nac.spec.elements import BLOCK, DTYPE_CODES, GROUP

_I8, _U8 = DTYPE_CODES["i8"], DTYPE_CODES["u8"]

_LARGEST = 127
_MOST_OF_4_BITS = 15
_LEAST_IN_GROUPS = _MOST_OF_4_BITS * float(np.finfo(np.float16).tiny)  # else scales lose digits
_MOST_IN_GROUPS = float(np.finfo(np.float16).max)
_FITS = 4  # times that groups are rounded and fitted again
_NO_SCALE = np.float32(1e-9)  # in the place of a scale of 0
Recipe = Callable[[int, Array], Tensor]


def fp16(id_: int, array: Array) -> Tensor:
    """Halves. The tensor itself says nothing about it, the header does."""
    with np.errstate(over="ignore"):
        halves = array.astype("<f2")
    return Tensor(id_, DTYPE_CODES["f16"], array.shape, halves.tobytes())


def int8_tensor(id_: int, array: Array) -> Tensor:
    """Integers under one scale."""
    scale = _scales(np.abs(array).max(initial=0), _NO_SCALE)
    return Tensor(id_, _I8, array.shape, _round(array, scale), 2, _bytes(scale))


def int8_channel(id_: int, array: Array) -> Tensor:
    """Integers, a scale for each place of axis 0; with one axis there is one scale for all."""
    if array.ndim < 2:
        return int8_tensor(id_, array)
    scales = _scales(np.abs(array).max(axis=tuple(range(1, array.ndim)), initial=0), _NO_SCALE)
    along = scales.reshape(-1, *[1] * (array.ndim - 1))
    return Tensor(id_, _I8, array.shape, _round(array, along), 3, _bytes(scales))


def block_fp8(id_: int, array: Array) -> Tensor:
    """Integers in blocks under a scale each; the last block is filled up with zeros."""
    flat = np.pad(array.reshape(-1), (0, -array.size % BLOCK)).reshape(-1, BLOCK)
    scales = _scales(np.abs(flat).max(axis=1), np.float32(1))
    data = _round(flat, scales[:, None])
    return Tensor(
        id_, _I8, (flat.size,), data, 4, _bytes(scales),
        block=BLOCK, true_shape=array.shape,
    )  # fmt: skip


def int4_group(id_: int, array: Array) -> Tensor:
    """Integers of 4 bits in groups under a scale and a minimum each; the last is filled up.

    With one axis, or where f16 has no such scales, there are integers of 8 bits.
    """
    largest = float(np.abs(array).max())
    if array.ndim < 2 or not (largest == 0 or _LEAST_IN_GROUPS < largest < _MOST_IN_GROUPS):
        return int8_channel(id_, array)
    flat = array.reshape(-1)
    whole = flat.size - flat.size % GROUP
    # What fills the last group up counts for nothing, so that its own elements are fitted alone.
    parts = [flat[:whole].reshape(-1, GROUP), flat[whole:].reshape(1, -1)]
    fitted = [_fit_groups(part) for part in parts if part.size]
    scales, minimums = (np.concatenate(figures) for figures in zip(*fitted, strict=True))
    filled = np.pad(flat, (0, -flat.size % GROUP), mode="edge").reshape(-1, GROUP)
    integers = _round_groups(filled, scales, minimums).astype(np.uint8).reshape(-1, 2)
    data = integers[:, 0] | integers[:, 1] << 4
    figures = np.stack([scales, minimums], axis=1).astype("<f2").tobytes()
    return Tensor(
        id_, _U8, data.shape, data.tobytes(), 5, figures, block=GROUP, true_shape=array.shape
    )


def _fit_groups(groups: Array) -> tuple[Array, Array]:
    """A scale and a minimum a group, in values of f16: from end to end, then by least squares."""
    low, high = groups.min(axis=1), groups.max(axis=1)
    best = _in_halves((high - low) / np.float32(_MOST_OF_4_BITS)), _in_halves(low)
    least = _group_errors(groups, *best)
    scales, minimums = best
    for _ in range(_FITS):
        integers = _round_groups(groups, scales, minimums)
        scales, minimums = _least_squares(groups, integers, scales)
        errors = _group_errors(groups, scales, minimums)
        better = errors < least  # false where something is infinite
        best = np.where(better, scales, best[0]), np.where(better, minimums, best[1])
        least = np.where(better, errors, least)
    return best


def _least_squares(groups: Array, integers: Array, scales: Array) -> tuple[Array, Array]:
    """What fits groups best under given integers; a scale stays where all of these are one."""
    around = integers - integers.mean(axis=1, keepdims=True)
    spread = np.square(around).sum(axis=1)
    with np.errstate(all="ignore"):
        found = np.where(spread > 0, (around * groups).sum(axis=1) / spread, scales)
    rounded = _in_halves(found)
    return rounded, _in_halves(groups.mean(axis=1) - rounded * integers.mean(axis=1))


def _round_groups(groups: Array, scales: Array, minimums: Array) -> Array:
    with np.errstate(all="ignore"):
        found = np.rint((groups - minimums[:, None]) / scales[:, None])
    rounded: Array = np.clip(np.nan_to_num(found, nan=0), 0, _MOST_OF_4_BITS)
    return rounded


def _group_errors(groups: Array, scales: Array, minimums: Array) -> Array:
    """The sum of squares by which each group is missed."""
    with np.errstate(all="ignore"):
        integers = _round_groups(groups, scales, minimums)
        off = integers * scales[:, None] + minimums[:, None] - groups
        errors: Array = np.square(off, dtype=np.float64).sum(axis=1)
    return errors


def _in_halves(array: Array) -> Array:
    with np.errstate(over="ignore"):
        return array.astype(np.float16).astype(np.float32)


# By the code of a quantisation.
RECIPES: Mapping[int, Recipe] = MappingProxyType(
    {1: fp16, 2: int8_tensor, 3: int8_channel, 4: block_fp8, 5: int4_group}
)

# For tables that rows are taken from, where these are stored otherwise than other weights.
TABLE_RECIPES: Mapping[int, Recipe] = MappingProxyType({**RECIPES, 5: int8_channel})


def _scales(largest: Array, without: np.float32) -> Array:
    made = np.asarray(largest, np.float32) / np.float32(_LARGEST)
    return np.where(made == 0, without, made).astype(np.float32)


def _round(array: Array, scale: Array) -> bytes:
    found = np.clip(np.rint(array / scale), -_LARGEST, _LARGEST)
    return found.astype(np.int8).tobytes()


def _bytes(scales: Array) -> bytes:
    return scales.astype("<f4").tobytes()

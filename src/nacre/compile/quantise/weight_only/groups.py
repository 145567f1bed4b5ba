"""Weights as integers of few bits: neighbours along the sum are a group, which shares a scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nacre.core.values import Array

LEAST_GROUP = 16  # smaller ones are more scale than weight
_AT_A_TIME = 1 << 20  # elements that are rounded together: more leave the cache
# Parts of the range that a scale may cover: of few bits, cutting off the ends pays.
_COVERED = {4: (1.0, 0.94, 0.88, 0.82, 0.76, 0.7), 8: (1.0, 0.99, 0.98, 0.97)}
_TINY = np.finfo(np.float32).tiny


@dataclass(frozen=True, eq=False)
class RoundedWeights:
    """Weights [columns, depth] as integers, and a scale [columns, groups] for each group.

    A zero point is the integer that stands for 0, of the same type; a minimum is added behind the
    scale.
    """

    integers: Array
    scales: Array
    dtype: str  # of the integers
    zeros: Array | None = None
    minimums: Array | None = None

    @property
    def group(self) -> int:
        """How many neighbours share a scale."""
        return int(self.integers.shape[1] // self.scales.shape[1])

    def real(self) -> Array:
        """What the integers stand for, in f64."""
        real = self.integers.astype(np.float64).reshape(*self.scales.shape, self.group)
        if self.zeros is not None:
            real -= self.zeros[..., None]
        real *= self.scales.astype(np.float64)[..., None]
        if self.minimums is not None:
            real += self.minimums[..., None]
        return real.reshape(self.integers.shape)

    def columns(self, some: slice) -> RoundedWeights:
        """The same of some columns alone."""
        zeros = None if self.zeros is None else self.zeros[some]
        minimums = None if self.minimums is None else self.minimums[some]
        return RoundedWeights(self.integers[some], self.scales[some], self.dtype, zeros, minimums)


def group_size_for(depth: int, most: int) -> int | None:
    """The largest size of groups up to `most` that divides a depth; None where all are tiny."""
    sizes = (size for size in range(min(most, depth), LEAST_GROUP - 1, -1) if depth % size == 0)
    return next(sizes, None)


def round_to_nearest(weights: Array, group: int, bits: int) -> RoundedWeights:
    """The nearest integers, under the scale of each group that leaves the least squared error."""
    columns, depth = weights.shape
    parts = weights.reshape(-1, group)
    step = max(1, _AT_A_TIME // group)
    integers = np.empty(parts.shape, np.int8)
    scales = np.empty(len(parts), np.float16)
    for first in range(0, len(parts), step):
        some = slice(first, first + step)
        integers[some], scales[some] = _round_groups(parts[some].astype(np.float32), bits)
    by_column = scales.reshape(columns, depth // group)
    return RoundedWeights(integers.reshape(columns, depth), by_column, f"i{bits}")


def _round_groups(parts: Array, bits: int) -> tuple[Array, Array]:
    """Groups, a row each, as integers and scales."""
    scales = group_scales(parts, bits, np.ones(parts.shape[1], np.float32))
    return _nearest(parts, scales, 1 << (bits - 1)).astype(np.int8), scales.astype(np.float16)


def group_scales(parts: Array, bits: int, importance: Array) -> Array:
    """The scale of each group, a row, with the least squared error, in f32 as f16 has it.

    `importance` is what the square of each place counts.
    """
    most = 1 << (bits - 1)
    at = np.abs(parts).argmax(axis=1)[:, None]
    # The end of the range that has one integer more goes to the largest element.
    extreme = np.take_along_axis(parts, at, axis=1)[:, 0] / -most
    best_scales = np.zeros(len(parts), np.float32)
    best_gains = np.full(len(parts), -1.0, np.float32)
    for covered in _COVERED[bits]:
        integers = _nearest(parts, extreme * np.float32(covered), most)
        counted = integers * importance
        products = np.einsum("ij,ij->i", parts, counted)
        squares = np.maximum(np.einsum("ij,ij->i", integers, counted), _TINY)
        # Under the scale of least squares, so much of the squares of the weights is no error.
        gains = products * products / squares
        better = gains > best_gains
        best_scales[better], best_gains[better] = (products / squares)[better], gains[better]
    return best_scales.astype(np.float16).astype(np.float32)


def _nearest(parts: Array, scales: Array, most: int) -> Array:
    """The nearest integers under scales; a scale of 0 has 0 alone."""
    with np.errstate(divide="ignore", over="ignore"):
        factors = np.where(scales == 0, np.float32(0), np.float32(1) / scales)
    factors[np.isinf(factors)] = 0  # of weights that f16 has no scale for
    made = parts * factors[:, None]
    np.rint(made, out=made)
    rounded: Array = np.clip(made, -most, most - 1, out=made)
    return rounded

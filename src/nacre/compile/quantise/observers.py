"""Which range of reals 256 steps are to cover, by what was seen: a table of observers by name.

What is seen goes into a histogram around 0 whose bins double their width when a value falls
outside: one pass over the samples, in memory that does not grow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from types import MappingProxyType

import numpy as np

from nacre.compile.quantise.affine import HIGH, LOW, Affine, affine_of_range
from nacre.core.values import Array

HALF = 2048  # bins on either side of 0
Function = Callable[[Array], Array]
# From what was seen to the range; the function is what is done to each element next, if only that.
Observer = Callable[["Histogram", "Function | None"], Affine]

_LEAST = 2.0**-99  # of what bins reach: the inverse of narrower ones would leave f32
_SHARE = 0.9999  # of all elements that the percentile keeps
_PARTS = 24  # of each end of the range that the search tries
_PAIRED_PARTS = 16  # where it tries both ends together
_BESIDE = 8  # bins on either side that a peak is compared with
_LEAST_SHARE = 0.99  # of all elements that a range of least divergence covers
_PEAK = 4.0  # times as often as those is as much as counts


class Histogram:
    """Counts of the finite elements that were seen, their ends, and how many were not finite."""

    def __init__(self) -> None:
        self.counts = np.zeros(2 * HALF, np.int64)
        self.reach = 0.0  # the bins cover -reach to reach
        self.zeros = 0  # that came before there were bins
        self.low, self.high = np.inf, -np.inf
        self.lost = 0

    @property
    def is_empty(self) -> bool:
        """Whether no finite element was seen."""
        return self.low > self.high

    @property
    def centres(self) -> Array:
        """The middle of each bin."""
        made: Array = (np.arange(-HALF, HALF) + 0.5) * (self.reach / HALF)
        return made

    @property
    def used_bins(self) -> tuple[Array, Array]:
        """Where elements were seen, by their bins, and how many."""
        used = np.flatnonzero(self.counts)
        reals: Array = np.clip(self.centres[used], self.low, self.high)
        return reals, self.counts[used].astype(np.float64)

    def add(self, array: Array) -> None:
        """Take in the elements of an array."""
        flat = np.ravel(array)
        low, high = float(flat.min()), float(flat.max())
        if not (np.isfinite(low) and np.isfinite(high)):
            finite = flat[np.isfinite(flat)]
            self.lost += flat.size - finite.size
            if finite.size == 0:
                return
            flat, low, high = finite, float(finite.min()), float(finite.max())
        self.low, self.high = min(self.low, low), max(self.high, high)
        self._widen_to(max(-low, high))
        if self.reach:
            self._count(flat)
        else:
            self.zeros += flat.size

    def _widen_to(self, most: float) -> None:
        """Widen the bins until they reach a magnitude."""
        if self.reach == 0.0 and most > 0.0:
            self.reach = max(float(np.nextafter(most, np.inf)), _LEAST)
            self.counts[HALF] += self.zeros
            self.zeros = 0
        while 0.0 < self.reach <= most:
            pairs = self.counts.reshape(HALF, 2).sum(axis=1)
            self.counts = np.zeros_like(self.counts)
            self.counts[HALF // 2 : HALF // 2 + HALF] = pairs
            self.reach *= 2.0

    def _count(self, flat: Array) -> None:
        steps = flat.astype(np.float32, copy=False) * np.float32(HALF / self.reach)
        bins = np.floor(steps, out=np.asarray(steps)).astype(np.int32) + HALF
        np.clip(bins, 0, 2 * HALF - 1, out=bins)
        self.counts += np.bincount(bins, minlength=2 * HALF)

    def merge(self, other: Histogram) -> Histogram:
        """What both have seen."""
        if self.is_empty or other.is_empty:
            return self if other.is_empty else other
        merged = Histogram()
        merged.low, merged.high = min(self.low, other.low), max(self.high, other.high)
        merged.lost, merged.zeros = self.lost + other.lost, self.zeros + other.zeros
        merged._widen_to(max(-merged.low, merged.high))
        for part in (self, other):
            if part.reach:
                seen = part.counts > 0
                steps = np.floor(part.centres[seen] * (HALF / merged.reach)).astype(np.int64) + HALF
                bins = np.clip(steps, 0, 2 * HALF - 1)
                np.add.at(merged.counts, bins, part.counts[seen])
        return merged


def _full_range(seen: Histogram, after: Function | None) -> Affine:
    return affine_of_range(seen.low, seen.high)


def _percentile(seen: Histogram, after: Function | None) -> Affine:
    """Leave out the same share of elements at either end."""
    if seen.reach == 0.0:
        return _full_range(seen, after)
    total = int(seen.counts.sum())
    reached = np.cumsum(seen.counts)
    rest = (1.0 - _SHARE) / 2.0 * total
    first = int(np.searchsorted(reached, rest, side="right"))
    last = int(np.searchsorted(reached, total - rest, side="left"))
    width = seen.reach / HALF
    low, high = (first - HALF) * width, (min(last, 2 * HALF - 1) + 1 - HALF) * width
    return affine_of_range(max(low, seen.low), min(high, seen.high))


def _least_error(seen: Histogram, after: Function | None) -> Affine:
    """The range with the least square error, of what comes after where that is one function."""
    if seen.reach == 0.0:
        return _full_range(seen, after)
    reals, weights = seen.used_bins
    wanted = reals if after is None else after(reals)
    low, high = min(seen.low, 0.0), max(seen.high, 0.0)

    def error(affine: Affine) -> float:
        steps = np.clip(np.rint(reals / affine.scale) + affine.zero, LOW, HIGH)
        made = (steps - affine.zero) * affine.scale
        lost = np.asarray(made if after is None else after(made), np.float64) - wanted
        return float(np.dot(lost * lost, weights))

    # One end after the other, twice: the ends hardly depend on each other.
    parts = np.linspace(1.0, 1.0 / _PARTS, _PARTS)
    for _ in range(2):
        if high > 0.0:
            high = float(min(high * parts, key=lambda end: error(affine_of_range(low, end))))
        if low < 0.0:
            low = float(min(low * parts, key=lambda end: error(affine_of_range(end, high))))
    return affine_of_range(low, high)


def _least_divergence(seen: Histogram, after: Function | None) -> Affine:
    """The range whose steps tell most of how elements are distributed (Kullback and Leibler).

    What is beyond the range is at its ends in the one distribution, and nowhere in the other, in
    which the bins of a step share alike. Values that come far more often than those beside them
    (the zeros of a ReLU, what padding makes) count as often as these: a density has no such bins,
    and steps that share them out would all lose to steps of a bin each. Ranges that leave out more
    than a hundredth are none: with one bin inside, both distributions are that bin alone.
    """
    if seen.reach == 0.0:
        return _full_range(seen, after)
    reals, elements = seen.used_bins
    weights = np.minimum(elements, _PEAK * _running_medians(elements))
    least = _LEAST_SHARE * elements.sum()

    def divergence(affine: Affine) -> float:
        steps = np.rint(reals / affine.scale).astype(np.int64) + (affine.zero - LOW)
        first, last = np.searchsorted(steps, [0, HIGH - LOW + 1])
        if elements[first:last].sum() < least:
            return np.inf
        inside, own = steps[first:last], weights[first:last]
        given = own.copy()
        given[0] += weights[:first].sum()
        given[-1] += weights[last:].sum()
        shared = (np.bincount(inside, own) / np.maximum(np.bincount(inside), 1))[inside]
        ratio = (given / given.sum()) / (shared / shared.sum())
        return float(np.dot(given, np.log(ratio)) / given.sum())

    # Of few elements it goes up and down, so that ends are not searched one after the other.
    low, high = min(seen.low, 0.0), max(seen.high, 0.0)
    parts = np.linspace(1.0, 1.0 / _PAIRED_PARTS, _PAIRED_PARTS).tolist()
    ends = product([low * part for part in parts] if low else [low],
                   [high * part for part in parts] if high else [high])  # fmt: skip
    return min((affine_of_range(*pair) for pair in ends), key=divergence)


def _running_medians(weights: Array) -> Array:
    """Of each bin the median of those around it."""
    padded = np.pad(weights, _BESIDE, mode="reflect" if weights.size > _BESIDE else "edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * _BESIDE + 1)
    medians: Array = np.median(windows, axis=-1)
    return medians


OBSERVERS: Mapping[str, Observer] = MappingProxyType(
    {
        "minmax": _full_range,
        "percentile": _percentile,
        "mse": _least_error,
        "entropy": _least_divergence,
    }
)

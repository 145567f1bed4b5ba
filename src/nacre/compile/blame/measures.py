"""What is told of one tensor: noise, a histogram, how much of it is held at an end."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log10

import numpy as np

from nacre.compile.quantise.affine import HIGH, LOW, STEPS, Affine
from nacre.core.values import Array

BINS = 32
_POOR = 10.0  # dB: below, channels may stand for others, divided by a number each
_GAIN = 6.0  # dB that this has to explain
_FITS = 3  # of factors of one axis after those of the other
_TELLING = 0.25  # of the largest of a channel: smaller elements say little about a factor


@dataclass(frozen=True)
class Histogram:
    """Elements counted in bins of one width between two reals."""

    low: float
    high: float
    counts: tuple[int, ...]


def noise_ratio(found: Array, wanted: Array) -> float:
    """Signal over noise in dB; infinite where there is none, minus infinity where no number."""
    is_number = np.isfinite(wanted)
    a, b = found[is_number].astype(np.float64), wanted[is_number].astype(np.float64)
    if not np.isfinite(a).all():
        return -inf
    noise, signal = float(np.sum((a - b) ** 2)), float(np.sum(b**2))
    if not noise:
        return inf
    return 10 * log10(signal / noise) if signal else -inf


def channel_factors(found: Array, wanted: Array) -> Array | None:
    """What each channel of a tensor was multiplied by, where that explains most of its noise.

    Stages that make channels alike before they share a scale divide what a layer leaves, and
    multiply the weights that follow.
    """
    if found.ndim < 2 or noise_ratio(found, wanted) >= _POOR:
        return None
    rows, reals = (array.reshape(-1, array.shape[-1]) for array in (found, wanted))
    with np.errstate(all="ignore"):
        tells = np.abs(reals) >= _TELLING * np.abs(reals).max(axis=0)
        ratios = np.where(tells & (reals != 0), rows / reals, np.nan)
    if not np.isfinite(ratios).any(axis=0).all():
        return None
    factors: Array = np.nanmedian(ratios, axis=0).astype(np.float32)
    if not (factors > 0).all():
        return None
    gained = noise_ratio(found / factors, wanted) - noise_ratio(found, wanted)
    return factors if gained >= _GAIN else None


def weight_noise(found: Array, wanted: Array) -> float:
    """Signal over noise of weights whose last two axes are channels, in dB.

    Where channels were made alike, weights have a factor for each of either product's channels;
    those are found and taken off.
    """
    plain = noise_ratio(found, wanted)
    if plain >= _POOR or found.ndim < 2:
        return plain
    scaled = wanted
    for axis in (-1, -2) * _FITS:
        last, own = (np.moveaxis(array, axis, -1) for array in (found, scaled))
        rows, reals = (array.reshape(-1, array.shape[-1]) for array in (last, own))
        tells = (np.abs(reals) >= _TELLING * np.abs(reals).max(axis=0)) & (reals != 0)
        ratios = [np.median(rows[:, at][some] / reals[:, at][some]) if some.any() else 1.0
                  for at, some in enumerate(tells.T)]  # fmt: skip
        scaled = np.moveaxis(own * np.array(ratios, np.float32), -1, axis)
    return max(plain, noise_ratio(found, scaled))


def histogram_of(stored: Array, affine: Affine | None) -> Histogram:
    """Integers over all that their type has, floats between the least and the largest."""
    if affine is not None:
        counts = np.bincount((stored.astype(np.int64).ravel() - LOW) * BINS // (STEPS + 1),
                             minlength=BINS)  # fmt: skip
        return Histogram(affine.low, affine.high, tuple(map(int, counts)))
    finite = stored[np.isfinite(stored)].astype(np.float64)
    if not finite.size:
        return Histogram(0.0, 0.0, ())
    low, high = float(finite.min()), float(finite.max())
    counts, _ = np.histogram(finite, bins=BINS, range=(low, high))
    return Histogram(low, high, tuple(map(int, counts)))


def saturated_share(stored: Array, wanted: Array, affine: Affine | None) -> float:
    """The share of elements that lie beyond what their storage has."""
    if not stored.size:
        return 0.0
    if affine is None:
        lost = np.isfinite(wanted) & ~np.isfinite(stored.astype(np.float32))
        return float(np.mean(lost))
    half = affine.scale / 2  # what rounds to an end is not held there
    beyond = (wanted > affine.high + half) | (wanted < affine.low - half)
    at_end = (stored == HIGH) | (stored == LOW)
    return float(np.mean(beyond & at_end))

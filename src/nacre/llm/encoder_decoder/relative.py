"""Relative positions of T5: distances in buckets, each with a number for every head."""

from __future__ import annotations

from math import log

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int64]


def buckets_of(distances: Indices, count: int, farthest: int, *, both_ways: bool) -> Indices:
    """The bucket of each distance: how far a key stands behind the token that looks at it.

    Near ones have a bucket each, those that are further off share one by the logarithm, in f32 as
    PyTorch has it. What is looked at both ways has half of the buckets each way.
    """
    first = np.zeros_like(distances)
    if both_ways:
        count //= 2
        first = np.where(distances < 0, count, 0)
        distances = np.abs(distances)
    away = np.maximum(distances, 0)
    exact = count // 2
    with np.errstate(divide="ignore"):
        ratio = np.log(away.astype(np.float32) / np.float32(exact))
    steps = ratio / np.float32(log(farthest / exact)) * np.float32(count - exact)
    shared = exact + np.where(away < exact, 0, steps).astype(np.int64)
    return first + np.where(away < exact, away, np.minimum(shared, count - 1))


def bias_of(table: Array, distances: Indices, farthest: int, *, both_ways: bool) -> Array:
    """What is added to scores, `[heads, *distances]`, by a table `[buckets, heads]`."""
    found = buckets_of(distances, len(table), farthest, both_ways=both_ways)
    return np.ascontiguousarray(np.moveaxis(table[found], -1, 0))

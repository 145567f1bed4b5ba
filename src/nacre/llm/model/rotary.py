"""Rotary positions as tables of constants: what turns each position, by dimension."""

from __future__ import annotations

import numpy as np

from nacre.llm.model.config import Rotary
from nacre.llm.model.weights import Array


def rotary_tables(
    rotary: Rotary, context: int, factors: Array | None, long_factors: Array | None
) -> tuple[Array, Array]:
    """Cosines and signed sines of positions, `[context, dimensions]` each.

    A head x becomes x * cosines + y * sines, where y is x with its halves exchanged.
    """
    half = np.arange(0, rotary.dimensions, 2, dtype=np.float32) / np.float32(rotary.dimensions)
    frequencies = (1.0 / np.float64(rotary.base) ** half).astype(np.float32)
    used = factors
    if long_factors is not None and context > rotary.original_context > 0:
        used = long_factors
    if used is not None:
        frequencies = frequencies / used
    places = np.arange(context, dtype=np.float32) * np.float32(rotary.scale)
    angles = places[:, None] * frequencies
    factor = np.float32(rotary.attention_factor)
    cosines, sines = np.cos(angles) * factor, np.sin(angles) * factor
    return np.concatenate([cosines, cosines], -1), np.concatenate([-sines, sines], -1)

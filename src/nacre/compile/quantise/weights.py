"""Constant weights in integers of 8 bits: one scale for each output channel, no zero points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nacre.compile.quantise.affine import HIGH, LEAST_PRODUCT, MOST_BIAS, Affine, to_f32_scale
from nacre.core.values import Array

# Shares of the largest weight that the search tries as the end of the range.
_SHARES = tuple(float(share) for share in np.linspace(1.0, 0.6, 21))
# A channel whose steps are smaller than this of the result's can change nothing in it.
_LEAST_FACTOR = 2.0**-30
_ON_GRID = 1e-4  # how far from an integer a weight may be that is on a grid


@dataclass(frozen=True, eq=False)
class Weights:
    """Integers, their scales, and the bias in units of both scales."""

    stored: Array
    scales: tuple[float, ...]
    bias: Array
    widened: int  # channels whose scale was widened for their bias


def quantised_weights(
    weights: Array, bias: Array | None, axis: int, x: Affine, y: Affine, *,
    searched: bool, on_grid: bool,
) -> Weights:  # fmt: skip
    """Weights and bias of a product from `x` to `y`.

    `searched`: the scale with the least square error, else that which holds the largest weight.
    `on_grid`: weights that are whole multiples of something keep that as their scale.
    """
    rows = np.moveaxis(weights, axis, 0)
    flat = rows.reshape(rows.shape[0], -1).astype(np.float64)
    scales = _least_error(flat) if searched else np.abs(flat).max(axis=1) / HIGH
    if on_grid:
        grid = _common_scales(weights, axis)
        scales = np.where(grid > 0, grid, scales)
    reals = np.zeros(len(flat)) if bias is None else bias.astype(np.float64)
    for_bias = np.abs(reals) / (x.scale * MOST_BIAS)
    least = np.maximum(for_bias, max(_LEAST_FACTOR * y.scale, LEAST_PRODUCT) / x.scale)
    kept = np.array([to_f32_scale(scale) for scale in np.maximum(scales, least)], np.float32)
    stored = np.clip(np.rint(flat / kept[:, None]), -HIGH, HIGH).astype(np.int8)
    shaped = np.moveaxis(stored.reshape(rows.shape), 0, axis)
    units = np.float32(x.scale) * kept
    steps = np.clip(np.rint(reals / units), -MOST_BIAS, MOST_BIAS).astype(np.int32)
    widened = int(np.sum((scales < for_bias) & (np.abs(flat).max(axis=1) > 0)))
    return Weights(
        np.ascontiguousarray(shaped), tuple(float(s) for s in kept), steps, widened
    )  # fmt: skip


def _least_error(flat: Array) -> Array:
    most = np.abs(flat).max(axis=1)
    best, scales = np.full(len(flat), np.inf), np.zeros(len(flat))
    for share in _SHARES:
        tried = np.where(most > 0, most * (share / HIGH), 1.0)
        steps = np.clip(np.rint(flat / tried[:, None]), -HIGH, HIGH)
        lost = ((steps * tried[:, None] - flat) ** 2).sum(axis=1)
        better = lost < best
        best, scales = np.where(better, lost, best), np.where(better, tried, scales)
    return np.where(most > 0, scales, 0.0)


def _common_scales(weights: Array, axis: int) -> Array:
    """For each channel the scale of which all weights are multiples, up to 127; 0 where none is."""
    rows = np.moveaxis(weights, axis, 0).astype(np.float32)
    flat = rows.reshape(rows.shape[0], -1)
    most = np.abs(flat).max(axis=1)
    scales = np.zeros(len(flat), np.float32)
    for count in range(1, HIGH + 1):
        open_ = np.flatnonzero((scales == 0) & (most > 0))
        if not len(open_):
            break
        scale = most[open_] / np.float32(count)
        steps = flat[open_] / scale[:, None]
        fits = np.abs(steps - np.rint(steps)).max(axis=1) < _ON_GRID
        scales[open_[fits]] = [
            _exact_scale(flat[at], scale[i]) for i, at in enumerate(open_) if fits[i]
        ]  # fmt: skip
    return scales


def _exact_scale(row: Array, scale: np.float32) -> np.float32:
    """The scale itself, or a neighbour of which the weights are products to the last bit."""
    steps = np.rint(row / scale)
    near = [scale, np.nextafter(scale, np.float32(0)), np.nextafter(scale, np.float32(np.inf))]
    return next((s for s in near if np.array_equal(steps * s, row)), scale)

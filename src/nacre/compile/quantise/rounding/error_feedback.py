"""Rounding that looks at data: what one weight loses, the weights still to come take up.

The loss of a product on data is quadratic in the errors of its weights, by the second moments of
its inputs. Weights are rounded input by input, for all columns at once; the error of each goes to
those behind it in the way that costs least (GPTQ: Frantar and others, 2022).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nacre.core.values import Array

# For the next weights [columns, some], how much each input counts [some]: a scale for each column.
ChooseScales = Callable[[Array, Array], Array]

_BLOCK = 64  # inputs whose errors go to later ones together
_DAMPING = 0.01  # of the mean square of inputs, which is added to each: data is never all there is


def round_with_feedback(
    weights: Array, moments: Array, group: int, choose: ChooseScales, ends: tuple[int, int]
) -> tuple[Array, Array] | None:
    """Integers [columns, depth] between two ends and scales [columns, groups].

    None where the moments say nothing, or are no numbers.
    """
    columns, depth = weights.shape
    damped = _damp(moments)
    spread = None if damped is None else _error_propagation(damped)
    if damped is None or spread is None:
        return None
    importance = np.diagonal(damped).astype(np.float32)
    left = np.ascontiguousarray(weights.T, np.float32)  # an input a row: what is left to round
    integers = np.empty((depth, columns), np.int8)
    scales = np.empty((depth // group, columns), np.float32)
    for first in range(0, depth, group):
        some = slice(first, first + group)
        own = choose(np.ascontiguousarray(left[some].T), importance[some]).astype(np.float32)
        scales[first // group] = own
        for start in range(first, first + group, _BLOCK):
            _round_block(left, integers, own, spread, (start, min(start + _BLOCK, some.stop)), ends)
    return np.ascontiguousarray(integers.T), np.ascontiguousarray(scales.T)


def product_loss(errors: Array, moments: Array) -> Array:
    """What errors [columns, depth] of weights cost each column, summed over the data."""
    found: Array = np.einsum("ij,ij->i", errors @ moments, errors)
    return found


def _round_block(
    left: Array, integers: Array, scales: Array, spread: Array, part: tuple[int, int],
    ends: tuple[int, int],
) -> None:  # fmt: skip
    """Round the inputs of a block one by one, and hand on what all of them lost."""
    first, last = part
    inverse = np.divide(1.0, scales, out=np.zeros_like(scales), where=scales != 0)
    lost = np.empty((last - first, left.shape[1]), np.float32)
    for at in range(first, last):
        rounded = np.clip(np.rint(left[at] * inverse), *ends)
        integers[at] = rounded
        own = lost[at - first] = (left[at] - rounded * scales) / spread[at, at]
        left[at + 1 : last] -= spread[at, at + 1 : last, None] * own
    left[last:] -= spread[first:last, last:].T @ lost


def _damp(moments: Array) -> Array | None:
    """Moments to which something is added, so that they can be inverted."""
    mean = float(np.diagonal(moments).mean())
    if not (np.isfinite(moments).all() and mean > 0):
        return None
    made: Array = moments.astype(np.float64)
    made[np.diag_indices(len(made))] += _DAMPING * mean
    return made


def _error_propagation(damped: Array) -> Array | None:
    """How the error of each input goes to later ones: the upper root of the inverse."""
    try:
        root = np.linalg.cholesky(np.linalg.inv(damped))
    except np.linalg.LinAlgError:
        return None
    return np.asarray(root.T, np.float32)

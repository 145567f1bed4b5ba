"""AdaRound (Nagel et al., 2020): whether each weight is rounded up or down is learned.

The objective is what a product loses on data, `|W x - W~ x|^2`, which the second moments of `x`
give without another look at the data. Each weight goes up by a rectified sigmoid of a variable, and
a regulariser whose exponent falls drives that to 0 or 1. Steps are those of Adam, in f32.
"""

from __future__ import annotations

import numpy as np

from nacre.core.values import Array

STEPS = 200
_RATE = 0.1
_MOMENTUM, _SQUARES, _TINY = 0.9, 0.999, 1e-8  # of Adam
_ABOVE, _BELOW = 1.1, -0.1  # how far the sigmoid is stretched: zeta and gamma
_STRENGTH = 1.0  # of the regulariser, in units of one weight's own loss
_FIRST, _LAST = 6.0, 2.0  # the exponent of the regulariser: beta
_WARM_UP = 0.2  # the share of steps without it
_EDGE = 1e-3


def round_adaptively(steps: Array, moments: Array, steps_taken: int = STEPS) -> Array:
    """Integers for weights in units of their scales, [groups, columns, depth].

    `moments` are [groups, depth, depth]. Groups whose moments are all 0 are rounded to the nearest.
    """
    scale = np.maximum(np.trace(moments, axis1=1, axis2=2) / moments.shape[1], _TINY)
    metric = (moments / scale[:, None, None]).astype(np.float32)
    lower = np.floor(steps)
    share = (steps - lower).astype(np.float32)
    inside = np.clip(share, _EDGE, 1 - _EDGE)
    variable = -np.log((_ABOVE - _BELOW) / (inside - _BELOW) - 1)
    mean, square = np.zeros_like(variable), np.zeros_like(variable)
    for count in range(1, steps_taken + 1):
        slope = _slope(variable, share, metric, count / steps_taken)
        mean += (1 - _MOMENTUM) * (slope - mean)
        square += (1 - _SQUARES) * (slope * slope - square)
        unbiased = mean / (1 - _MOMENTUM**count)
        size = np.sqrt(square / (1 - _SQUARES**count)) + _TINY
        variable -= _RATE * unbiased / size
    return np.asarray(lower + (variable >= 0))


def _slope(variable: Array, share: Array, metric: Array, progress: float) -> Array:
    """The derivative of the objective by the variables."""
    sigmoid = 1 / (1 + np.exp(-variable))
    stretched = sigmoid * np.float32(_ABOVE - _BELOW) + np.float32(_BELOW)
    up = np.clip(stretched, 0, 1)
    by_up = 2 * np.matmul(up - share, metric)
    if progress > _WARM_UP:
        by_up -= _STRENGTH * _regulariser_slope(up, _exponent(progress))
    by_up *= (up == stretched) * (sigmoid * (1 - sigmoid)) * np.float32(_ABOVE - _BELOW)
    return np.asarray(by_up)


def _exponent(progress: float) -> float:
    """From the first to the last along half a wave."""
    part = (progress - _WARM_UP) / (1 - _WARM_UP)
    return _LAST + (_FIRST - _LAST) * 0.5 * (1 + float(np.cos(np.pi * part)))


def _regulariser_slope(up: Array, exponent: float) -> Array:
    """Of `|2 up - 1| ** exponent`, which the regulariser takes from 1."""
    from_middle = 2 * up - 1
    return np.asarray(2 * exponent * np.sign(from_middle) * np.abs(from_middle) ** (exponent - 1))

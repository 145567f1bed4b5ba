"""Optimisers: how a gradient changes a weight, with what is remembered of steps before.

Each is a value, and a step of it a function of a weight, its gradient and what was remembered.
They compute what `torch.optim` does, in the order in which it does.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from nacre.core.values import Array


class Moments(NamedTuple):
    """What is remembered of the gradients of a weight."""

    steps: int
    mean: Array
    square: Array | None = None


class SGD(Struct, frozen=True, kw_only=True):
    """Down the gradient, or down its running sum where there is momentum."""

    momentum: float = 0.0
    dampening: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0

    def update(
        self, weight: Array, gradient: Array, rate: float, moments: Moments | None
    ) -> tuple[Array, Moments | None]:
        """The weight after a step, and what to remember."""
        slope = _decayed(gradient, weight, self.weight_decay)
        if not self.momentum:
            return _as(weight, weight - _number(weight, rate) * slope), None
        mean = slope
        if moments is not None:
            mean = self.momentum * moments.mean + (1 - self.dampening) * slope
        move = slope + self.momentum * mean if self.nesterov else mean
        remembered = Moments((moments.steps if moments else 0) + 1, _as(weight, mean))
        return _as(weight, weight - _number(weight, rate) * move), remembered


class Adam(Struct, frozen=True, kw_only=True):
    """Along the running mean of gradients over the root of the mean of their squares."""

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0

    def update(
        self, weight: Array, gradient: Array, rate: float, moments: Moments | None
    ) -> tuple[Array, Moments | None]:
        """The weight after a step, and what to remember."""
        slope = _decayed(gradient, weight, self.weight_decay)
        return _adam_step(weight, slope, rate, self.betas, self.eps, moments)


class AdamW(Struct, frozen=True, kw_only=True):
    """As Adam, with a decay that makes weights smaller by itself, not by way of the gradient."""

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.01

    def update(
        self, weight: Array, gradient: Array, rate: float, moments: Moments | None
    ) -> tuple[Array, Moments | None]:
        """The weight after a step, and what to remember."""
        smaller = _as(weight, weight * _number(weight, 1 - rate * self.weight_decay))
        return _adam_step(smaller, gradient, rate, self.betas, self.eps, moments)


Optimiser = SGD | Adam | AdamW
OPTIMISERS: Mapping[str, type[SGD] | type[Adam] | type[AdamW]] = MappingProxyType(
    {"sgd": SGD, "adam": Adam, "adamw": AdamW}
)


def _adam_step(
    weight: Array,
    slope: Array,
    rate: float,
    betas: tuple[float, float],
    eps: float,
    moments: Moments | None,
) -> tuple[Array, Moments]:
    first, second = betas
    count = (moments.steps if moments else 0) + 1
    mean, square = (1 - first) * slope, (1 - second) * slope * slope
    if moments is not None and moments.square is not None:
        mean = moments.mean + (1 - first) * (slope - moments.mean)
        square = second * moments.square + square
    size = np.sqrt(square) / sqrt(1 - second**count) + eps
    moved = weight - (float(rate) / (1 - first**count)) * (mean / size)
    return _as(weight, moved), Moments(count, _as(weight, mean), _as(weight, square))


def _decayed(gradient: Array, weight: Array, decay: float) -> Array:
    return gradient + decay * weight if decay else gradient


def _as(weight: Array, value: Array) -> Array:
    """A value in the type of a weight: of arrays without axes, arithmetic makes numbers."""
    return np.asarray(value, weight.dtype)


def _number(weight: Array, value: float) -> Array:
    return np.asarray(value, weight.dtype)

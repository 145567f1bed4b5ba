"""What an optimiser remembers, as arrays by name: to be stored, and taken up again.

`mean/NAME` is of the gradients of a parameter, `square/NAME` of their squares, `steps/NAME` how
many there were. NumPy writes such arrays by itself: `np.savez(file, **arrays)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nacre.base.excerpt import backquote
from nacre.base.suggest import did_you_mean
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array, array_or_none
from nacre.nac.training.optimisers import SGD, Moments, Optimiser

_SQUARE = "square"


def state_arrays(moments: Mapping[str, Moments | None]) -> dict[str, Array]:
    """Arrays for what is remembered; none for parameters of which nothing is."""
    arrays: dict[str, Array] = {}
    for name, one in moments.items():
        if one is None:
            continue
        arrays[f"steps/{name}"] = np.asarray(one.steps, np.int64)
        arrays[f"mean/{name}"] = one.mean
        if one.square is not None:
            arrays[f"{_SQUARE}/{name}"] = one.square
    return arrays


def moments_of(
    given: object, weights: Mapping[str, Array], optimiser: Optimiser
) -> dict[str, Moments | None]:
    """What is remembered, out of its arrays; Unsupported where these are of something else."""
    if not isinstance(given, Mapping):
        kind = type(given).__name__
        raise Unsupported(f"the optimiser's state is a {kind}, expected arrays by name")
    kinds = _remembered_kinds(optimiser)
    parts: dict[str, dict[str, Any]] = {}
    for key in given:
        kind, _, name = str(key).partition("/")
        if kind not in kinds:
            optimiser_name = type(optimiser).__name__
            expected = ", ".join(f"{one}/NAME" for one in kinds) or "none"
            message = f"the optimiser's state has {backquote(str(key))}, which {optimiser_name}"
            raise Unsupported(f"{message} does not remember; expected {expected}")
        if name not in weights:
            hint = did_you_mean(name, weights)
            raise Unsupported(f"the optimiser's state is of a parameter {backquote(name)}", hint)
        parts.setdefault(name, {})[kind] = given[key]
    return {name: _moments(name, found, kinds, weights[name]) for name, found in parts.items()}


def _remembered_kinds(optimiser: Optimiser) -> tuple[str, ...]:
    if isinstance(optimiser, SGD):
        return ("steps", "mean") if optimiser.momentum else ()
    return ("steps", "mean", _SQUARE)


def _moments(name: str, found: Mapping[str, Any], kinds: tuple[str, ...], weight: Array) -> Moments:
    missing = [kind for kind in kinds if kind not in found]
    if missing:
        raise Unsupported(f"the optimiser's state lacks {backquote(f'{missing[0]}/{name}')}")
    steps = array_or_none(found["steps"])
    if steps is None or steps.dtype.kind not in "iu" or steps.shape or steps < 1:
        raise Unsupported(f"{backquote(f'steps/{name}')} is no whole number from 1 on")
    arrays = {kind: _array(kind, name, found[kind], weight) for kind in kinds[1:]}
    square = arrays.get(_SQUARE)
    if square is not None and (square < 0).any():
        raise Unsupported(f"{backquote(f'{_SQUARE}/{name}')} has numbers below 0")
    return Moments(int(steps), arrays["mean"], square)


def _array(kind: str, name: str, given: object, weight: Array) -> Array:
    array = array_or_none(given)
    expected = f"{weight.dtype}{list(weight.shape)}"
    shown = type(given).__name__ if array is None else f"{array.dtype}{list(array.shape)}"
    key = backquote(f"{kind}/{name}")
    if array is None or shown != expected:
        raise Unsupported(f"{key} is {shown}, expected {expected}")
    if not np.isfinite(array).all():
        raise Unsupported(f"{key} has numbers that are not finite")
    return array.copy()

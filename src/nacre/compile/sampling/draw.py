"""Random inputs that reach the network: each drawn from what the model does with it."""

from __future__ import annotations

from math import inf, prod

import numpy as np

from nacre.compile.sampling.input_ranges import InputRange, input_ranges, integer_range
from nacre.core.module import Module, TensorType
from nacre.core.values import Array

# How large numbers are, attempt by attempt: what saturates a network may be too large for it.
SIZES = (1.0, 0.1, 10.0, 0.01)
ATTEMPTS = len(SIZES)
_FEW = 16  # elements of an input that is counted one by one
_FAR = 4.0  # sizes from 0, where an end says nothing about what inputs are like
_EDGE = 0.02  # of a range: a logarithm is not taken at its end
_SHORT = 8  # bits of integers that are pixels or levels, each of which may come


def draw_inputs(
    module: Module, seed: int, lead: tuple[int, ...] = (), attempt: int = 0
) -> dict[str, Array]:
    """An array for each input, by name; `lead` are axes before, and attempts are all different.

    Indices lie within their axis and lengths in the upper half of theirs; of a mask the first
    elements are 1 and the last one is 0; floats lie around 0, or where their function is defined.
    """
    rng = np.random.default_rng(seed if not attempt else (seed, attempt))
    types, ranges = module.input_types, input_ranges(module)
    size = SIZES[attempt % ATTEMPTS]
    longest = max((max(type_.shape, default=1) for type_ in types.values()), default=1)
    return {
        name: _draw_array(
            rng, _as_counter(ranges[name], type_, longest), type_, (*lead, *type_.shape), size
        )
        for name, type_ in types.items()
    }


def _as_counter(range_: InputRange, type_: TensorType, longest: int) -> InputRange:
    """A few integers that are no rows of a table count something: no more than the model has."""
    is_counter = type_.element.is_integer and type_.element.bits > _SHORT
    is_few = prod(type_.shape) <= _FEW
    if range_.kind == "any" and is_counter and is_few:
        return InputRange("length", 1, longest)
    return range_


def _draw_array(
    rng: np.random.Generator,
    range_: InputRange,
    type_: TensorType,
    shape: tuple[int, ...],
    size: float,
) -> Array:
    element = type_.element
    if range_.kind == "mask":
        values = _mask(rng, shape)
    elif range_.kind in ("index", "length"):
        low, high = integer_range(range_, most=1)
        low = max(low, (low + high + 1) // 2) if range_.kind == "length" else low
        low, high = (int(min(max(e, element.lowest), element.highest)) for e in (low, high))
        values = rng.integers(low, high, shape, endpoint=True)
    elif element.kind == "float":
        values = _reals(rng, range_, shape, size)
    elif element.bits <= _SHORT:
        values = rng.integers(int(element.lowest), int(element.highest), shape, endpoint=True)
    else:
        values = rng.integers(0, 2, shape)  # any table has such rows
    return values.astype(element.dtype)


def _mask(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Ones, and behind them zeros, along the last axis: both kinds, whichever is masked."""
    count = shape[-1] if shape else 1
    if count < 2:
        return np.ones(shape, np.int64)
    ends = rng.integers((count + 1) // 2, count, (*shape[:-1], 1))
    made: Array = (np.arange(count) < ends).astype(np.int64)
    return made


def _reals(
    rng: np.random.Generator, range_: InputRange, shape: tuple[int, ...], size: float
) -> Array:
    ends = -range_.low, range_.high
    if max(ends) == inf and min(ends) > _FAR * size:
        drawn: Array = size * rng.standard_normal(shape)
        return drawn.clip(range_.low, range_.high)
    if range_.low == -inf or range_.high == inf:
        away: Array = size * (_EDGE + np.abs(rng.standard_normal(shape)))
        return range_.low + away if range_.high == inf else range_.high - away
    edge = _EDGE * (range_.high - range_.low)
    within: Array = rng.uniform(range_.low + edge, range_.high - edge, shape)
    return within

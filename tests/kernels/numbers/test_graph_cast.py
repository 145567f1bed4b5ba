"""`Cast` between all element types, against exact fractions."""

from __future__ import annotations

import math
from bisect import bisect_left
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.elements import GRAPH_TYPES
from tests.kernels.oracle_elements import (
    FLOATS,
    INTEGERS,
    Array,
    assert_equal,
    doubles,
    dtype_of,
    numbers,
    rounded,
    run,
    wrapped,
)
from tests.kernels.oracle_views import LAYOUTS, seeds

TYPES = sorted(GRAPH_TYPES)
HAS_INFINITY = {name: name != "f8e4m3" for name in FLOATS}


@cache
def positive_values(elem: str) -> list[Fraction]:
    """The finite values of a narrow type from 0 up; where one stands says whether it is even."""
    bits = 8 * dtype_of(elem).itemsize
    every = np.arange(1 << (bits - 1), dtype=f"u{bits // 8}").view(dtype_of(elem))
    return [Fraction(v) for v in doubles(every).tolist() if math.isfinite(v)]


def nearest(value: Fraction, elem: str) -> float:
    """The float of a type that is nearest, ties to the even one."""
    if elem == "f64":
        return float(value)
    if elem == "f32":
        return nearest_single(value)
    values, size = positive_values(elem), abs(value)
    place = bisect_left(values, size)
    if place == len(values):
        # The next one would be an ulp further; from half of it on, the greatest is left.
        middle = values[-1] + (values[-1] - values[-2]) / 2
        # It is even where the greatest is odd.
        is_beyond = size > middle or (size == middle and (place - 1) % 2 == 1)
        beyond = math.inf if HAS_INFINITY[elem] else math.nan
        found = beyond if is_beyond else float(values[-1])
    elif values[place] == size or place == 0:
        found = float(values[place])
    else:
        below, above = size - values[place - 1], values[place] - size
        is_up = above < below or (above == below and place % 2 == 0)
        found = float(values[place if is_up else place - 1])
    return math.copysign(found, value)


def nearest_single(value: Fraction) -> float:
    with np.errstate(over="ignore"):
        guess = np.float32(float(value))
        near = [np.nextafter(guess, np.float32(end)) for end in (-np.inf, np.inf)] + [guess]
    finite = [v for v in near if np.isfinite(v)]
    best = min(finite, key=lambda v: (abs(Fraction(float(v)) - value), int(v.view(np.uint32)) & 1))
    limit = Fraction(2) ** 128 - Fraction(2) ** 103  # half an ulp above the greatest
    return math.copysign(math.inf, value) if abs(value) >= limit else float(best)


def converted(value: Any, source: str, to: str, saturate: bool) -> Any:  # noqa: ANN401
    """One value in another type: a bool, an integer or a float."""
    element = GRAPH_TYPES[to]
    if to == "bool":
        return bool(value != 0)
    is_float = source in FLOATS
    if to in INTEGERS:
        if is_float and math.isnan(value):
            return 0
        low, high = int(element.lowest), int(element.highest)
        if is_float and math.isinf(value):
            return high if value > 0 else low
        whole = math.trunc(value)
        return min(max(whole, low), high) if is_float or saturate else wrapped(whole, to)
    if is_float and (math.isnan(value) or math.isinf(value)):
        if math.isnan(value) or (not HAS_INFINITY[to] and not saturate):
            return math.nan
        return math.copysign(float(element.highest), value) if saturate else value
    if saturate and abs(value) > element.highest:
        return math.copysign(float(element.highest), value)
    return math.copysign(nearest(Fraction(value), to), value)


def values_of(elem: str, seed: int) -> Array:
    """Values, many of them beyond other types, or just beside the middle of two of theirs."""
    rng = np.random.default_rng(seed)
    if elem == "bool" or elem in INTEGERS:
        plain = numbers(elem, (12,), seed)
        if GRAPH_TYPES[elem].bits < 32:
            return plain
        digits = rng.integers(1, GRAPH_TYPES[elem].bits - 1, 12)
        near = (np.int64(1) << digits) + (np.int64(1) << (digits // 2)) + rng.integers(-1, 2, 12)
        return np.concatenate([plain, near.astype(plain.dtype)])
    size = np.exp2(rng.integers(-30, 70, 24).astype(np.float64))
    step = rng.choice([2.0**-3, 2.0**-4, 2.0**-8, 2.0**-11, 2.0**-24, 0.0], 24)
    nudge = rng.choice([2.0**-40, -(2.0**-40), 0.0], 24)
    values = size * (1 + step + nudge) * rng.choice([-1.0, 1.0], 24)
    return np.concatenate([rounded(values, elem), numbers(elem, (12,), seed)])


@given(
    st.sampled_from(TYPES),
    st.sampled_from(TYPES),
    st.booleans(),
    seeds,
    st.sampled_from(LAYOUTS),
)
def test_casts(source: str, to: str, saturate: bool, seed: int, layout: str) -> None:
    x = values_of(source, seed)

    found = run("Cast", source, [x], {"to": to, "saturate": saturate}, result=to, layout=layout)

    plain = (x if x.dtype.kind in "iub" else doubles(x)).tolist()
    wanted = [converted(value, source, to, saturate) for value in plain]
    expected = np.array(wanted, np.float64 if to in FLOATS else object)
    with np.errstate(all="ignore"):
        assert_equal(found, expected.astype(dtype_of(to)))
    if to in FLOATS and source in FLOATS:
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(
            np.signbit(doubles(found))[known], np.signbit(expected)[known]
        )


@pytest.mark.parametrize("source", ["f16", "bf16", "f8e4m3", "f8e5m2"])
@pytest.mark.parametrize("to", TYPES)
def test_every_narrow_value(source: str, to: str) -> None:
    bits = 8 * dtype_of(source).itemsize
    x = np.arange(1 << bits, dtype=f"u{bits // 8}").view(dtype_of(source))
    x = x[:: 37 if bits == 16 else 1]
    for saturate in (False, True):
        found = run("Cast", source, [x], {"to": to, "saturate": saturate}, result=to)
        wanted = [converted(value, source, to, saturate) for value in doubles(x).tolist()]
        expected = np.array(wanted, np.float64 if to in FLOATS else object)
        with np.errstate(all="ignore"):
            assert_equal(found, expected.astype(dtype_of(to)))


@pytest.mark.parametrize("to", ["f16", "bf16", "f8e4m3", "f8e5m2"])
def test_a_double_beside_the_middle_of_two_narrow_floats_is_rounded_once(to: str) -> None:
    first = bisect_left(positive_values(to), 1)
    values = [float(value) for value in positive_values(to)[first : first + 9]]
    middles = [(low + high) / 2 for low, high in pairwise(values)]
    x = np.array([middle + nudge for middle in middles for nudge in (-(2.0**-40), 0, 2.0**-40)])
    found = run("Cast", "f64", [x], {"to": to}, result=to)
    assert doubles(found).tolist() == [nearest(Fraction(value), to) for value in x.tolist()]


@pytest.mark.parametrize("source", ["f32", "f64"])
def test_ends_of_i64(source: str) -> None:
    x = np.array([2.0**63, -(2.0**63), 2.0**62, 1e30, -1e30, np.nan, np.inf, -np.inf, -0.9])
    found = run("Cast", source, [x.astype(dtype_of(source))], {"to": "i64"}, result="i64")
    low, high = -(2**63), 2**63 - 1
    assert found.tolist() == [high, low, 2**62, high, low, 0, high, low, 0]


@pytest.mark.parametrize("source", TYPES)
def test_a_cast_to_the_same_type_changes_nothing(source: str) -> None:
    x = numbers(source, (64,), 5)
    found = run("Cast", source, [x], {"to": source}, result=source)
    assert_equal(found, x)


@pytest.mark.parametrize("to", TYPES)
def test_a_scalar(to: str) -> None:
    found = run("Cast", "f64", [np.array(1.0)], {"to": to}, result=to)
    assert found.shape == ()
    assert float(found) == 1.0

"""Ranges and scales, against searches and sums written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.compile.quantise.affine import HIGH, LOW, Affine, affine_of_constant, affine_of_range
from nacre.compile.quantise.observers import HALF, OBSERVERS, Histogram
from nacre.compile.quantise.weights import quantised_weights
from tests.compile.quantise.networks import Array, numbers
from tests.effort import scaled

finite = st.floats(-1e6, 1e6, allow_nan=False, width=32)


@given(low=finite, high=finite)
def test_a_range_is_covered_and_zero_is_exact(low: float, high: float) -> None:
    low, high = sorted((low, high))
    found = affine_of_range(low, high)
    assert LOW <= found.zero <= HIGH
    assert found.real(np.array([found.zero], np.int8))[0] == 0.0
    step = found.scale * 0.51
    assert found.low <= min(low, 0.0) + step
    assert found.high >= max(high, 0.0) - step


@given(values=st.lists(finite, min_size=1, max_size=50))
def test_storing_and_reading_costs_half_a_step(values: list[float]) -> None:
    array = np.array(values, np.float32)
    found = affine_of_range(float(array.min()), float(array.max()))
    back = found.real(found.quantise(array))
    # At the ends the zero point may have moved the range by half a step more.
    assert np.abs(back - array).max() <= found.scale * 1.01 + 1e-30


@given(value=st.floats(2.0**-60, 2.0**60, width=32), sign=st.sampled_from((-1, 1)))
def test_one_number_as_an_operand_is_exact(value: float, sign: int) -> None:
    array = np.array(sign * value, np.float32)
    found = affine_of_constant(array)
    assert found.real(found.quantise(array)) == array


def test_bounds_that_change_no_integer() -> None:
    six = affine_of_range(0.0, 6.0)
    assert six.high > 6.0  # the scale is rounded up
    assert six.is_unchanged_by_clip(0.0, 6.0)
    assert six.is_unchanged_by_clip(-1.0, float("inf"))
    assert not six.is_unchanged_by_clip(0.0, 5.9)
    assert not six.is_unchanged_by_clip(0.1, 6.0)


def test_what_has_no_place() -> None:
    found = Affine(0.5, 3)
    reals = np.array([np.nan, np.inf, -np.inf, 1e30, 0.25], np.float32)
    assert found.quantise(reals).tolist() == [3, 127, -128, 127, 3]


@given(
    parts=st.lists(st.lists(finite, min_size=1, max_size=30), min_size=1, max_size=6),
)
def test_a_histogram_counts_everything_it_was_shown(parts: list[list[float]]) -> None:
    seen = Histogram()
    for part in parts:
        seen.add(np.array(part, np.float32))
    every = np.concatenate([np.array(part, np.float32) for part in parts])
    assert (seen.low, seen.high) == (every.min(), every.max())
    if seen.reach:
        assert int(seen.counts.sum()) == every.size
        width = seen.reach / HALF
        filled = seen.centres[seen.counts > 0]
        assert filled.min() - width <= max(every.min(), -seen.reach)
        assert filled.max() + width >= every.max()


def test_histograms_of_parts_join_to_that_of_the_whole() -> None:
    a, b = numbers(1, 4000), numbers(2, 3000, spread=37.0)
    whole, first, second = Histogram(), Histogram(), Histogram()
    whole.add(np.concatenate([a, b]))
    first.add(a)
    second.add(b)
    joined = first.merge(second)
    assert (joined.low, joined.high) == (whole.low, whole.high)
    assert int(joined.counts.sum()) == 7000
    for name, observer in OBSERVERS.items():
        x, y = observer(joined, None), observer(whole, None)
        assert x.scale == pytest.approx(y.scale, rel=0.05), name


def test_what_is_not_finite_is_counted_apart() -> None:
    seen = Histogram()
    seen.add(np.array([np.nan, 1.0, np.inf, -2.0], np.float32))
    assert (seen.low, seen.high, seen.lost) == (-2.0, 1.0, 2)


@pytest.mark.parametrize("name", OBSERVERS)
def test_values_above_zero_use_all_steps(name: str) -> None:
    seen = Histogram()
    seen.add(np.abs(numbers(3, 5000)))
    assert OBSERVERS[name](seen, None).zero == LOW


@pytest.mark.parametrize("name", OBSERVERS)
def test_zeros_only(name: str) -> None:
    seen = Histogram()
    seen.add(np.zeros(10, np.float32))
    found = OBSERVERS[name](seen, None)
    assert found.is_sound
    assert not found.real(found.quantise(np.zeros(3, np.float32))).any()


def test_the_percentile_leaves_outliers_out_and_the_whole_range_does_not() -> None:
    array = numbers(5, 100_000)
    array[7] = 1000.0
    seen = Histogram()
    seen.add(array)
    assert OBSERVERS["minmax"](seen, None).high == pytest.approx(1000.0, rel=0.01)
    assert OBSERVERS["percentile"](seen, None).high < 10.0


def naive_divergence(seen: Histogram, found: Affine) -> float:
    """By the definition, a bin at a time."""
    given: dict[int, float] = {}
    shares: dict[int, list[int]] = {}
    bins = [(i, int(n)) for i, n in enumerate(seen.counts) if n]
    centres = {i: min(max(float(seen.centres[i]), seen.low), seen.high) for i, _ in bins}
    steps = {i: round(centres[i] / found.scale) + found.zero for i, _ in bins}
    inside = [i for i, _ in bins if LOW <= steps[i] <= HIGH]
    counts = {i: float(seen.counts[i]) for i, _ in bins}
    if sum(counts[i] for i in inside) < 0.99 * sum(counts.values()):
        return math.inf
    order = [count for _, count in bins]
    for at, (i, count) in enumerate(bins):  # what comes far more often than what is beside it
        beside = sorted(order[abs(j) if j < len(order) else 2 * len(order) - 2 - j]
                        for j in range(at - 8, at + 9))  # fmt: skip
        counts[i] = min(float(count), 4.0 * beside[8])
    for i, weight in counts.items():
        given_to = min(max(i, inside[0]), inside[-1])
        given[given_to] = given.get(given_to, 0.0) + weight
        if i in inside:
            shares.setdefault(steps[i], []).append(i)
    q = {i: sum(counts[j] for j in shares[steps[i]]) / len(shares[steps[i]]) for i in inside}
    total, kept = sum(given.values()), sum(q.values())
    return sum(given[i] / total * math.log(given[i] / total / (q[i] / kept)) for i in inside)


@settings(deadline=None, max_examples=scaled(30))
@given(seed=st.integers(0, 1000), power=st.sampled_from((1, 3, 5)))
def test_the_least_divergence_is_that_of_the_definition(seed: int, power: int) -> None:
    seen = Histogram()
    seen.add(numbers(seed, 1000) ** power)
    found = OBSERVERS["entropy"](seen, None)
    parts = [1.0, 11 / 16, 6 / 16, 2 / 16]
    others = [affine_of_range(seen.low * a, seen.high * b) for a in parts for b in parts]
    least = min(naive_divergence(seen, other) for other in others)
    assert naive_divergence(seen, found) <= least + 1e-9


@pytest.mark.parametrize("power", [1, 3])
def test_entropy_keeps_most_of_what_a_relu_makes(power: int) -> None:
    array = np.maximum(numbers(3, 100_000) ** power, 0.0)
    array[::7] = 0.125  # as a plane has where all that goes into it is padding
    seen = Histogram()
    seen.add(array)
    found = OBSERVERS["entropy"](seen, None)
    assert np.mean(array > found.high) < 0.01


def test_entropy_of_few_elements_covers_them() -> None:
    array = numbers(2, 192)
    seen = Histogram()
    seen.add(array)
    found = OBSERVERS["entropy"](seen, None)
    assert (
        np.mean((array > found.high + found.scale) | (array < (LOW - 1 - found.zero) * found.scale))
        < 0.02
    )


def test_entropy_leaves_rare_outliers_out() -> None:
    array = numbers(5, 100_000)
    array[7] = 1000.0
    seen = Histogram()
    seen.add(array)
    assert OBSERVERS["entropy"](seen, None).high < 150.0


@settings(deadline=None)
@given(seed=st.integers(0, 1000), power=st.sampled_from((1, 3)))
def test_the_least_error_beats_the_whole_range(seed: int, power: int) -> None:
    array = numbers(seed, 3000) ** power
    seen = Histogram()
    seen.add(array)

    def error(found: Affine) -> float:
        return float(((found.real(found.quantise(array)) - array) ** 2).sum())

    assert error(OBSERVERS["mse"](seen, None)) <= error(OBSERVERS["minmax"](seen, None)) * 1.02


def test_steps_are_not_spent_on_what_the_next_function_forgets() -> None:
    """Far below zero a sigmoid gives nothing, so the range need not reach there."""
    array = numbers(8, 20_000, spread=4.0) - 6.0
    seen = Histogram()
    seen.add(array)

    def sigmoid(x: Array) -> Array:
        return 1.0 / (1.0 + np.exp(-x.astype(np.float64)))

    alone, before = OBSERVERS["mse"](seen, None), OBSERVERS["mse"](seen, sigmoid)
    assert before.low > alone.low + 3.0


@settings(deadline=None)
@given(seed=st.integers(0, 1000), axis=st.sampled_from((0, 3)), searched=st.booleans())
def test_weights_within_half_a_step(seed: int, axis: int, searched: bool) -> None:
    weights = numbers(seed, 4, 3, 2, 5) * np.exp(numbers(seed + 1, 4, 1, 1, 5) * 3)
    channels = weights.shape[axis]
    bias = numbers(seed + 2, channels)
    x, y = Affine(0.02, -3), Affine(0.1, 5)
    made = quantised_weights(weights, bias, axis, x, y, searched=searched, on_grid=False)
    shape = [1] * 4
    shape[axis] = -1
    scales = np.array(made.scales).reshape(shape)
    back = made.stored * scales
    assert made.stored.min() >= -127
    if not searched:
        assert (np.abs(back - weights) <= scales * 0.501).all()
    units = 0.02 * np.array(made.scales)
    assert (np.abs(made.bias * units - bias) <= units * 0.51 + 1e-6 * np.abs(bias)).all()


def test_channels_of_zeros_keep_their_bias() -> None:
    weights = np.zeros((3, 4), np.float32)
    bias = np.array([0.0, 5.0, -1e-3], np.float32)
    x, y = Affine(0.02, -3), Affine(0.1, 5)
    made = quantised_weights(weights, bias, 0, x, y, searched=True, on_grid=False)
    back = made.bias * 0.02 * np.array(made.scales)
    np.testing.assert_allclose(back, bias, atol=1e-6, rtol=1e-4)
    assert made.widened == 0


def test_a_bias_beyond_32_bits_widens_the_scale_of_its_channel() -> None:
    weights = np.full((2, 4), 1e-12, np.float32)
    bias = np.array([0.0, 3.0], np.float32)
    x, y = Affine(0.001, 0), Affine(0.1, 0)
    made = quantised_weights(weights, bias, 0, x, y, searched=False, on_grid=False)
    assert made.widened == 1
    back = made.bias * 0.001 * np.array(made.scales)
    np.testing.assert_allclose(back, bias, rtol=1e-6)


@given(seed=st.integers(0, 1000), most=st.integers(1, 127))
def test_weights_that_were_integers_become_them_again(seed: int, most: int) -> None:
    random = np.random.default_rng(seed)
    stored = random.integers(-most, most + 1, (6, 30)).astype(np.int8)
    stored[:, 0], stored[:, 1] = most, 1  # nothing coarser has them all
    scales = random.uniform(1e-4, 1.0, 6).astype(np.float32)
    weights = stored.astype(np.float32) * scales[:, None]
    x, y = Affine(0.02, 0), Affine(0.1, 0)
    made = quantised_weights(weights, None, 0, x, y, searched=True, on_grid=True)
    np.testing.assert_array_equal(made.stored, stored)
    np.testing.assert_array_equal(np.array(made.scales, np.float32), scales)

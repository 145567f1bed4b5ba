"""Weights as integers in groups: beside a search over many scales, group by group."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.compile.quantise.weight_only.groups import (
    RoundedWeights,
    group_size_for,
    round_to_nearest,
)
from tests.compile.models import Array, values


def error_of(group: Array, scale: float, most: int) -> float:
    """The squared error of a group under a scale, weight by weight."""
    total = 0.0
    for weight in group.tolist():
        integer = min(max(round(weight / scale), -most), most - 1) if scale else 0
        total += (weight - integer * scale) ** 2
    return total


@pytest.mark.sampled(2)
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("group", [32, 64])
def test_errors_are_below_those_of_plain_scales_and_near_the_best_of_many(
    bits: int, group: int
) -> None:
    weights = values((6, 128), 3)
    made = round_to_nearest(weights, group, bits)
    most = 1 << (bits - 1)
    ours = plain = best = 0.0
    for row, scales, stored in zip(weights, made.scales, made.integers, strict=True):
        for at, scale in enumerate(scales):
            part = slice(at * group, (at + 1) * group)
            largest = float(np.abs(row[part]).max())
            # What is stored is what the error is of.
            own = float(np.square(row[part] - stored[part] * np.float64(scale)).sum())
            assert own == pytest.approx(error_of(row[part], float(scale), most))
            ours += own
            plain += error_of(row[part], largest / (most - 1), most)
            tried = np.linspace(0.6, 1.05, 60) * largest / most
            best += min(error_of(row[part], s * sign, most) for s in tried for sign in (1, -1))
    assert ours < plain
    assert ours < 1.12 * best


@settings(max_examples=20)
@given(st.integers(1, 5), st.sampled_from([16, 32]), st.sampled_from([4, 8]), st.integers(0, 99))
def test_integers_stay_within_their_bits_and_zeros_stay_zeros(
    columns: int, group: int, bits: int, seed: int
) -> None:
    weights = values((columns, 2 * group), seed, 10.0 ** (seed % 5 - 3))
    weights[0, :group] = 0
    made = round_to_nearest(weights, group, bits)
    assert made.scales.dtype == np.float16
    assert -(1 << (bits - 1)) <= made.integers.min()
    assert made.integers.max() < 1 << (bits - 1)
    assert not made.real()[0, :group].any()


def test_weights_that_f16_has_no_scale_for_are_zeros() -> None:
    made = round_to_nearest(np.full((2, 32), 1e-43, np.float32), 32, 4)
    assert not made.real().any()


@pytest.mark.parametrize(
    ("depth", "most", "expected"), [(512, 128, 128), (576, 128, 96), (576, 64, 64), (97, 64, None)]
)
def test_groups_divide_the_depth(depth: int, most: int, expected: int | None) -> None:
    assert group_size_for(depth, most) == expected


@pytest.mark.parametrize("has_zeros", [False, True])
@pytest.mark.parametrize("has_minimums", [False, True])
def test_integers_stand_for_what_loops_make_of_them(has_zeros: bool, has_minimums: bool) -> None:
    random = np.random.default_rng(5)
    columns, groups, group = 5, 3, 4
    integers = random.integers(-8, 8, (columns, groups * group)).astype(np.int8)
    scales, minimums = random.normal(size=(2, columns, groups)).astype(np.float16)
    zeros = random.integers(-8, 8, (columns, groups)).astype(np.int8)
    weights = RoundedWeights(
        integers, scales, "i4", zeros if has_zeros else None, minimums if has_minimums else None
    )
    expected = np.zeros(integers.shape)
    for column, at in np.ndindex(integers.shape):
        of = column, at // group
        moved = int(integers[column, at]) - (int(zeros[of]) if has_zeros else 0)
        expected[column, at] = moved * float(scales[of])
        expected[column, at] += float(minimums[of]) if has_minimums else 0.0
    assert np.array_equal(weights.real(), expected)
    assert np.array_equal(weights.columns(slice(1, 4)).real(), expected[1:4])

"""About how large values are, from weights alone."""

from __future__ import annotations

import numpy as np
import pytest

from nacre.compile.legalise import size_estimates
from nacre.compile.legalise.size_estimates import estimate_sizes
from nacre.core.builder import Builder
from tests.compile.models import Array

MANY = size_estimates._AT_A_TIME + 77  # more than are looked at together


def size_of(array: Array) -> float:
    builder = Builder()
    value = builder.constant(array)
    return estimate_sizes(builder.module(value))[value]


@pytest.mark.parametrize("count", [1, 77, MANY])
def test_constants_are_as_large_as_the_root_of_their_mean_square(count: int) -> None:
    array = np.random.default_rng(1).normal(scale=0.02, size=count).astype(np.float32)
    squares = sum(float(number) ** 2 for number in array.tolist())
    assert size_of(array) == pytest.approx((squares / count) ** 0.5, rel=1e-12)


def test_infinities_and_unknown_numbers_do_not_count() -> None:
    array = np.full((2, MANY), 3.0, np.float32)
    array[0, ::2], array[1, ::3] = -np.inf, np.nan
    assert size_of(array) == 3.0
    assert size_of(np.full(4, np.inf, np.float32)) == 0.0

"""Random numbers of further distributions: moments of n draws, within five standard deviations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nacre import nac
from nacre.base.diagnostics import InputError
from nacre.core.values import Array
from nacre.nac.operations.registry import our_operations
from nacre.nac.program.assembly import Assembler
from nacre.nac.run.opaque import Randomness
from tests.nac.operations.test_random_numbers import COUNT, X, draw

Loose = Any
# The call, what its elements are, and the mean and the variance of what it draws.
CASES: list[tuple[tuple[Loose, ...], float, float, float]] = [
    (("poisson.default", X), 3.0, 3, 3),
    (("poisson.default", X), 0.0, 0, 0),
    (("_standard_gamma.default", X), 2.0, 2, 2),
    (("_sample_dirichlet.default", X), 5.0, 1 / COUNT, 0),
    (("geometric.default", X, 0.25), 0.0, 4, 12),
    (("log_normal.default", X, 0.5, 0.25), 0.0,
     np.exp(0.53125), np.expm1(0.0625) * np.exp(1.0625)),
]  # fmt: skip


@pytest.mark.parametrize(("call", "each", "mean", "variance"), CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_distribution(
    call: tuple[Loose, ...], each: float, mean: float, variance: float, dtype: str
) -> None:
    x = np.full(COUNT, each, dtype)
    found = draw(*call, x=x)
    assert found.dtype == np.dtype(dtype)
    assert found.shape == x.shape
    wide = found.astype(np.float64)
    assert abs(wide.mean() - mean) <= 5 * np.sqrt(variance / COUNT) + 1e-6
    fourth = float(((wide - wide.mean()) ** 4).mean())
    assert abs(wide.var() - variance) < 5 * np.sqrt(max(fourth - variance**2, 0) / COUNT) + 1e-3


def test_cauchy_has_a_median_and_a_width() -> None:
    found = draw("cauchy.default", X, 2.0, 3.0)
    low, middle, high = np.quantile(found, [0.25, 0.5, 0.75])
    np.testing.assert_allclose([low, middle, high], [-1, 2, 5], atol=0.4)


def binomial(count: Array, chance: Array) -> Array:
    assembler = Assembler()
    names = [assembler.input(name) for name in ("n", "p")]
    assembler.output(assembler.call("aten.binomial.default", *names))
    (found,) = nac.load(nac.to_bytes(assembler.file())).run({"n": count, "p": chance})
    return found


def test_trials_of_each_element() -> None:
    count = np.repeat(np.array([[0], [10], [7]], np.float32), COUNT, axis=1)
    chance = np.array([[0.5], [0.25], [1]], np.float32)
    found = binomial(count, chance)
    np.testing.assert_allclose(found.mean(axis=1), [0, 2.5, 7], atol=0.05)
    assert found.max() <= 10
    with pytest.raises(InputError, match="not between 0 and 1"):
        binomial(count, chance + 1)


def test_shares_come_to_one() -> None:
    x = np.tile(np.array([1, 2, 5], np.float32), (COUNT, 1))
    found = draw("_sample_dirichlet.default", X, x=x)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(found.mean(axis=0), [1 / 8, 2 / 8, 5 / 8], atol=0.01)
    tiny = draw("_sample_dirichlet.default", X, x=x * np.float32(1e-30))
    assert np.isfinite(tiny).all()


def test_slopes_are_drawn_in_training_alone() -> None:
    x = np.linspace(-1, 1, COUNT, dtype=np.float32)
    call = "rrelu_with_noise_functional.default"
    kernel = our_operations()[f"aten.{call}"].kernel
    found, slopes = kernel(x, x, 0.25, 0.5, True, rng=Randomness(3).generator(0))
    np.testing.assert_array_equal(found, x * slopes)
    assert (slopes[x > 0] == 1).all()
    drawn = slopes[x < 0]
    assert 0.25 <= drawn.min() < 0.26
    assert 0.49 < drawn.max() <= 0.5
    found, noise = kernel(x, x, 0.25, 0.5, False, rng=Randomness(3).generator(0))
    assert noise is x
    np.testing.assert_allclose(found[x < 0], 0.375 * x[x < 0], rtol=1e-6)


WRONG: dict[str, tuple[tuple[Loose, ...], float, str]] = {
    "a rate": (("poisson.default", X), -1, "a rate is below 0"),
    "no rate": (("poisson.default", X), np.nan, "a rate is below 0"),
    "a count": (("binomial.default", X, X), -1, "a count is below 0"),
    "a concentration": (("_standard_gamma.default", X), 0, "not above 0"),
    "one of several": (("_sample_dirichlet.default", X), -1, "not above 0"),
    "a width": (("cauchy.default", X, 0.0, 0.0), 0, "`sigma` is not above 0"),
    "a deviation": (("log_normal.default", X, 0.0, 0.0), 0, "`std` is not above 0"),
    "a chance": (("geometric.default", X, 1.5), 0, "`p` is not between 0 and 1"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_no_distribution_has_is_refused(name: str) -> None:
    call, each, told = WRONG[name]
    with pytest.raises(InputError, match=rf"NAC47.*{told}"):
        draw(*call, x=np.full(4, each, np.float32))

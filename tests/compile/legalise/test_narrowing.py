"""Constants of f32 in f16: what keeps from dividing by 0 stays above it, infinities stay."""

from __future__ import annotations

import numpy as np
import pytest

import nacre
from nacre.base.elements import GRAPH_TYPES
from nacre.compile.legalise import size_estimates
from nacre.compile.legalise.narrowing import narrow, narrow_bound
from nacre.compile.legalise.size_estimates import estimate_sizes
from nacre.core.builder import Builder
from nacre.core.module import Module
from tests.compile.models import Array, values

HALF = GRAPH_TYPES["f16"]
LEAST = 2.0**-24


def test_elements_and_what_is_told_of_them() -> None:
    array = np.array([1.0, 1e9, -1e9, 1e-20, 0.0, np.inf, -np.inf, np.nan], np.float32)
    found = narrow(array, HALF, keeps_nonzero=False)
    expected = [1.0, 65504, -65504, 0.0, 0.0, np.inf, -np.inf, np.nan]
    np.testing.assert_array_equal(found.array, np.array(expected, np.float16))
    assert list(found.notes("%3", HALF)) == [
        "2 elements of constant %3 lie beyond f16; they are held at 65504",
        "1 element of constant %3 is 0 in f16",
    ]


@pytest.mark.parametrize("number", [1e-8, -1e-8, 1e-20, 1e-30])
def test_what_keeps_from_0_is_not_0(number: float) -> None:
    found = narrow(np.array([number, 0.0, 0.5], np.float32), HALF, keeps_nonzero=True)
    assert found.array.tolist() == [np.copysign(LEAST, number), 0.0, 0.5]
    assert list(found.notes("%3", HALF)) == [
        "1 element of constant %3 is too small for f16; it is held at 6e-08"
    ]


@pytest.mark.parametrize(
    ("number", "held"),
    [(0.0, 0.0), (1e-12, LEAST), (-1e-12, -LEAST), (6.0, 6.0), (1e9, 65504.0), (-np.inf, -65504.0)],
)
def test_bounds(number: float, held: float) -> None:
    assert narrow_bound(number, HALF) == held


def _divided(how: str) -> Module:
    """Rows over their sums, which are kept above 0 by a number that f16 has not.

    Sums of what is positive: over the root of squares it would be a norm, which has f32 inside.
    """
    builder = Builder()
    x = builder.input("x", "f32", (8, 32))
    y = builder.add("Linear", x, builder.constant(values((32, 32), 1, 0.3)))
    sizes = builder.add("Unary", y, op="Abs")
    length = builder.add("Sum", sizes, axes=(1,), keepdims=True)
    tiny = builder.constant(np.float32(1e-12))
    if how == "clip":
        length = builder.add("Clip", length, min=1e-12)
    else:
        length = builder.add("BinOp", length, tiny, op=how)
    return builder.module(builder.add("BinOp", y, length, op="Div"))


@pytest.mark.parametrize("how", ["clip", "Max", "Add"])
def test_a_row_of_zeros_stays_one(how: str) -> None:
    module, x = _divided(how), values((8, 32), 2)
    x[3] = 0.0
    bundle = nacre.compile(module, "npm16k", "f16")
    validation = bundle.validate({"x": x})
    assert validation.ok, validation
    (found,) = bundle.run({"x": x}).values()
    assert not found[3].any()
    # What keeps a length from 0 is no number of f16: the quotient is taken in f32.
    assert not any("too small" in note for note in bundle.manifest.notes)


def test_infinities_stay_on_integers_too() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (16, 32))
    y = builder.add("Linear", x, builder.constant(values((32, 32), 1, 0.3)))
    is_above = builder.add("Compare", x, builder.constant(np.float32(0.0)), op="Gt")
    least = builder.constant(np.full((16, 32), -np.inf, np.float32))
    module = builder.module(builder.add("Where", is_above, y, least))
    data = [{"x": values((16, 32), seed)} for seed in (4, 5)]
    bundle = nacre.compile(module, "npm4k", "i8", calibration=data)
    (found,) = bundle.run(data[0]).values()
    is_far = np.abs(data[0]["x"]) > 0.1  # the sign of the rest is lost in 8 bits
    expected = np.where(data[0]["x"] > 0, 0.0, -np.inf)
    np.testing.assert_array_equal(np.isinf(found)[is_far], np.isinf(expected)[is_far])
    assert not [note for note in bundle.manifest.notes if "beyond" in note]


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

"""Short chains of functions that f16 is bad at: valid in a plan, or a layer is named."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings

import nacre
from nacre.compile.bundle.bundle import Bundle
from nacre.compile.bundle.validation import Validation
from nacre.compile.options import Precision
from tests.compile.accuracy.small_graphs import Chain, chains, feeds_of, module_of
from tests.effort import PROFILE

_EXAMPLES = {"fast": 12, "full": 150, "fuzz": 3000}


def validate(
    chain: Chain, device: str = "npm4k", precision: Precision = "f16"
) -> tuple[Bundle, Validation]:
    """The plan of a chain, compared with the evaluator."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of what no type of floats holds
        bundle = nacre.compile(module_of(chain), device, precision)
        return bundle, bundle.validate(feeds_of(chain))


@pytest.mark.fuzz
@settings(max_examples=_EXAMPLES.get(PROFILE, 12), deadline=None)
@given(chains)
def test_a_chain_is_valid_or_a_layer_is_named(chain: Chain) -> None:
    _, found = validate(chain)
    assert found.first_difference is None, found
    assert found.verdict != "not valid" or found.lost_most is not None, found


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "steps",
    [
        "times 1e-6, log1p",
        "times 1e-3, exp - 1",
        "times 1e-4, exp - 1",
        "times 1e-4, softmax, exp - 1, cube",
        "norm, times 1e-6, elu, norm by power",
        "softplus far left",
        "softplus far left, square, times 1e-5",
        "reciprocal, elu, times 1e-6",
        "times 1e4, over 1e6",
        "times 1e4, linear of 1e-6",
        "linear of 1e-6, linear of 1e5",
        "times 1e-6, linear of 1e5",
    ],
)
def test_what_f16_was_bad_at_is_valid(steps: str) -> None:
    _, found = validate(Chain(tuple(steps.split(", ")), 3))
    assert found.ok, found


@pytest.mark.parametrize("step", ["elu", "softplus far left", "expm1", "log1p"])
def test_small_numbers_keep_their_digits_in_f32(step: str) -> None:
    """Against 64 bits: log(1 + x) and e^x - 1 as they stand lose half of them."""
    chain = Chain(("times 1e-6", step))
    bundle, _ = validate(chain, "nem_reference", "f32")
    x = feeds_of(chain)["x"].astype(np.float64) * np.float32(1e-6)
    expected = {
        "elu": np.where(x > 0, x, np.expm1(x)),
        "softplus far left": np.log1p(
            np.exp((x.astype(np.float32) - np.float32(13)).astype(float))
        ),
        "expm1": np.expm1(x),
        "log1p": np.log1p(np.abs(x)),
    }[step]
    (found,) = bundle.run(feeds_of(chain)).values()
    assert np.allclose(found, expected, rtol=2e-6, atol=0)


def test_what_only_a_few_digits_are_left_of_is_not_made_wide_without_need() -> None:
    bundle, _ = validate(Chain(("linear", "elu", "exp - 1", "times 1e-2")))
    assert {op.type.dtype for op in bundle.legal.operations} == {"f16"}

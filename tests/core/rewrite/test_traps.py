"""Modules that look as if a rewrite for inference would do, and do not mean what it makes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module
from nacre.core.passes.inference import optimise
from tests.core.rewrite.test_inference import (
    RECOVERED,
    Chain,
    layer_norm,
    opcodes,
    require_kept,
    values,
)


class Spreading(Chain):
    """One of its numbers has axes of its own, along which the result is spread."""

    def __init__(self, *shape: int, place: int, own: tuple[int, ...]) -> None:
        super().__init__(*shape)
        self._place, self._own = place, own

    def number(self, value: float) -> int:
        self._place -= 1
        if self._place != -1:
            return super().number(value)
        return self.builder.constant(np.full(self._own, value, np.float32))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("spelt", [spelt for spelt, _ in RECOVERED])
@pytest.mark.parametrize("own", [(1, 1, 1, 1), (3, 1, 1, 1), (3, 2, 1, 1)])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_constants_that_spread_the_result(
    spelt: Callable[[Chain], int], own: tuple[int, ...], place: int
) -> None:
    chain = Spreading(2, 4, 8, place=place, own=own)
    module = chain.builder.module(spelt(chain))
    made = optimise(module)
    assert made.output_types == module.output_types
    require_kept(module, made)


@pytest.mark.parametrize("epsilon", [np.inf, np.nan, -1.0])
def test_an_epsilon_that_no_norm_has(epsilon: float) -> None:
    class Odd(Chain):
        def number(self, value: float) -> int:
            return super().number(epsilon if value == 1e-5 else value)

    chain = Odd(2, 4, 8)
    module = chain.builder.module(layer_norm(chain))
    made = optimise(module)
    assert "LayerNorm" not in opcodes(made)
    inputs = {"x": values((2, 4, 8))}
    np.testing.assert_array_equal(evaluate(made, inputs)[0], evaluate(module, inputs)[0])


@pytest.mark.parametrize("scale", [np.inf, np.nan])
def test_a_scale_that_no_attention_has(scale: float) -> None:
    chain = Chain(2, 4, 8)
    keys = chain.builder.add("Transpose", chain.x, permutation=(0, 2, 1))
    scores = chain.op("Mul", chain.builder.add("MatMul", chain.x, keys), chain.number(scale))
    weights = chain.builder.add("Softmax", scores, axis=-1)
    module = chain.builder.module(chain.builder.add("MatMul", weights, chain.x))
    made = optimise(module)
    assert "Attention" not in opcodes(made)
    assert np.isnan(evaluate(made, {"x": values((2, 4, 8))})[0]).all()


@given(st.tuples(*[st.integers(-2, 2)] * 4), st.tuples(*[st.integers(0, 2)] * 4))
def test_pads_that_cut_and_pads_of_the_convolution(
    cut: tuple[int, ...], own: tuple[int, ...]
) -> None:
    builder = Builder()
    x = builder.input("x", "f32", (1, 2, 7, 8))
    top, left, bottom, right = cut
    padded = builder.add("Pad", x, pads=(0, 0, top, left, 0, 0, bottom, right))
    kernel = builder.constant(values((3, 2, 3, 3), 1))
    module = builder.module(builder.add("Conv", padded, kernel, pads=own))
    made = optimise(module)
    assert ("Pad" in opcodes(made)) == (min(cut) < 0)
    require_kept(module, made)


def scaled(dtype: str, weight: float, factor: float, kind: str = "Mul") -> Module:
    builder = Builder()
    x = builder.input("x", dtype, (1, 1, 4, 4))
    type_ = np.dtype(np.float16 if dtype == "f16" else np.float32)
    weights = builder.constant(np.full((1, 1, 1, 1), weight, type_), dtype)
    made = builder.add("Conv", x, weights)
    return builder.module(
        builder.add("BinOp", made, builder.constant(np.array(factor, type_), dtype), op=kind)
    )


@pytest.mark.parametrize(
    ("module", "x", "tolerance"),
    [
        (scaled("f16", 200.0, 1000.0), 0.01, 2e-3),
        (scaled("f16", 1e-3, 3e4, "Div"), 6e4, 2e-2),
        (scaled("f32", 1e5, 1e38), 1e-30, 1e-6),
    ],
    ids=["too large for f16", "too small for f16", "too large for f32"],
)
def test_weights_that_the_element_type_does_not_hold(
    module: Module, x: float, tolerance: float
) -> None:
    (name, type_), *_ = module.input_types.items()
    inputs = {name: np.full(type_.shape, x, type_.element.dtype)}
    found, expected = (evaluate(m, inputs)[0] for m in (optimise(module), module))
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(found, expected, rtol=tolerance)
    assert "BinOp" in opcodes(optimise(module))


def test_a_variance_below_zero_stays_a_batch_norm() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (1, 1, 4, 4))
    made = builder.add("Conv", x, builder.constant(values((1, 1, 3, 3))))
    one = builder.constant(np.ones(1, np.float32))
    less = builder.constant(np.full(1, -2.0, np.float32))
    module = builder.module(builder.add("BatchNorm", made, one, one, one, less))
    assert "BatchNorm" in opcodes(optimise(module))

"""Rewrites for inference: the operations that come out, and values that hardly change."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module
from nacre.core.passes.inference import INFERENCE, optimise
from nacre.core.passes.runner import Pass, run_passes
from nacre.core.verify import verify

Array = npt.NDArray[Any]


def values(shape: tuple[int, ...], seed: int = 0) -> Array:
    made: Array = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return made


def inputs_of(module: Module) -> dict[str, Array]:
    return {n: values(t.shape, i) for i, (n, t) in enumerate(module.input_types.items())}


def opcodes(module: Module) -> list[str]:
    return [op.opcode for op in module if op.opcode not in ("Input", "ConstTensor", "ConstF32")]


def require_kept(module: Module, made: Module, tolerance: float = 1e-5) -> None:
    """Valid, and nearly the same values."""
    assert verify(made, "nacre-1") == []
    inputs = inputs_of(module)
    for found, expected in zip(evaluate(made, inputs), evaluate(module, inputs), strict=True):
        assert found.shape == expected.shape
        scale = max(1.0, float(np.abs(expected).max()))
        assert float(np.abs(found - expected).max()) <= tolerance * scale


class Chain:
    """Builds a module in the order in which one reads it."""

    def __init__(self, *shape: int) -> None:
        self.builder = Builder()
        self.x = self.builder.input("x", "f32", shape)

    def number(self, value: float) -> int:
        return self.builder.constant(np.array(value, np.float32))

    def literal(self, *shape: int, seed: int = 1) -> int:
        return self.builder.constant(values(shape, seed))

    def op(self, kind: str, a: int, b: int) -> int:
        return self.builder.add("BinOp", a, b, op=kind)

    def unary(self, kind: str, a: int) -> int:
        return self.builder.add("Unary", a, op=kind)


def silu(c: Chain) -> int:
    return c.op("Mul", c.unary("Sigmoid", c.x), c.x)


def hard_swish(c: Chain) -> int:
    held = c.builder.add("Clip", c.op("Add", c.x, c.number(3.0)), min=0.0, max=6.0)
    return c.op("Div", c.op("Mul", c.x, held), c.number(6.0))


def hard_swish_inside(c: Chain) -> int:
    held = c.builder.add("Clip", c.op("Add", c.number(3.0), c.x), min=0.0, max=6.0)
    return c.op("Mul", c.x, c.op("Mul", held, c.number(1 / 6)))


def hard_swish_by_sigmoid(c: Chain) -> int:
    gate = c.builder.add("HardSigmoid", c.x, alpha=float(np.float32(1 / 6)), beta=0.5)
    return c.op("Mul", c.x, gate)


def gelu(c: Chain) -> int:
    inner = c.unary("Erf", c.op("Div", c.x, c.number(sqrt(2))))
    return c.op("Mul", c.op("Mul", c.x, c.op("Add", inner, c.number(1.0))), c.number(0.5))


def gelu_by_half(c: Chain) -> int:
    inner = c.unary("Erf", c.op("Mul", c.x, c.number(sqrt(0.5))))
    return c.op("Mul", c.op("Mul", c.number(0.5), c.x), c.op("Add", c.number(1.0), inner))


def layer_norm(c: Chain) -> int:
    mean = c.builder.add("Mean", c.x, axes=(-1,), keepdims=True)
    centred = c.op("Sub", c.x, mean)
    square = c.op("Pow", centred, c.number(2.0))
    variance = c.builder.add("Mean", square, axes=(-1,), keepdims=True)
    root = c.unary("Sqrt", c.op("Add", variance, c.number(1e-5)))
    scaled = c.op("Mul", c.op("Div", centred, root), c.literal(8, seed=3))
    return c.op("Add", scaled, c.literal(8, seed=4))


def rms_norm(c: Chain) -> int:
    square = c.builder.add("Mean", c.op("Mul", c.x, c.x), axes=(2,), keepdims=True)
    root = c.unary("Rsqrt", c.op("Add", square, c.number(1e-6)))
    return c.op("Mul", c.literal(8, seed=5), c.op("Mul", c.x, root))


def attention(c: Chain) -> int:
    keys = c.builder.add("Transpose", c.unary("Tanh", c.x), permutation=(0, 2, 1))
    scores = c.op("Mul", c.builder.add("MatMul", c.x, keys), c.number(8**-0.5))
    masked = c.op("Add", scores, c.literal(4, 4, seed=6))
    weights = c.builder.add("Softmax", masked, axis=-1)
    return c.builder.add("MatMul", weights, c.unary("Sin", c.x))


RECOVERED: list[tuple[Callable[[Chain], int], list[str]]] = [
    (silu, ["Silu"]),
    (hard_swish, ["HardSwish"]),
    (hard_swish_inside, ["HardSwish"]),
    (hard_swish_by_sigmoid, ["HardSwish"]),
    (gelu, ["Gelu"]),
    (gelu_by_half, ["Gelu"]),
    (layer_norm, ["LayerNorm"]),
    (rms_norm, ["RmsNorm"]),
    (attention, ["Unary", "Unary", "Attention"]),
]


@pytest.mark.parametrize(
    ("spelt", "expected"), RECOVERED, ids=lambda part: getattr(part, "__name__", "")
)
def test_what_is_spelt_out_is_recovered(spelt: Callable[[Chain], int], expected: list[str]) -> None:
    chain = Chain(2, 4, 8)
    module = chain.builder.module(spelt(chain))
    made = optimise(module)
    assert opcodes(made) == expected
    require_kept(module, made)


def another_slope(c: Chain) -> int:
    return c.op("Mul", c.x, c.builder.add("HardSigmoid", c.x, alpha=0.2, beta=0.5))


def another_operand(c: Chain) -> int:
    return c.op("Mul", c.x, c.unary("Sigmoid", c.op("Add", c.x, c.number(1.0))))


def a_mean_that_is_used_twice(c: Chain) -> int:
    mean = c.builder.add("Mean", c.x, axes=(1,), keepdims=True)
    centred = c.op("Sub", c.x, mean)
    variance = c.builder.add("Mean", c.op("Mul", centred, centred), axes=(2,), keepdims=True)
    return c.op("Div", centred, c.unary("Sqrt", c.op("Add", variance, c.number(1e-5))))


@pytest.mark.parametrize("spelt", [another_slope, another_operand])
def test_what_only_looks_alike_stays(spelt: Callable[[Chain], int]) -> None:
    chain = Chain(2, 4, 8)
    module = chain.builder.module(spelt(chain))
    made = optimise(module)
    assert opcodes(made) == opcodes(module)
    require_kept(module, made, 0.0)


def test_a_norm_over_other_axes_than_its_mean_is_no_layer_norm() -> None:
    chain = Chain(2, 4, 8)
    module = chain.builder.module(a_mean_that_is_used_twice(chain))
    made = optimise(module)
    assert "LayerNorm" not in opcodes(made)
    require_kept(module, made)


@st.composite
def convolutions(draw: st.DrawFn) -> Module:
    """A convolution of any kind with scales and shifts behind it, perhaps a pad before."""
    groups = draw(st.sampled_from([1, 2]))
    is_last = draw(st.booleans())
    channels, outputs, side = 4, 6, 5
    builder = Builder()
    shape = (1, side, side, channels) if is_last else (1, channels, side, side)
    value = builder.input("x", "f32", shape)
    if draw(st.booleans()):
        inner = (0, 1, 2, 0) if is_last else (0, 0, 1, 2)
        value = builder.add("Pad", value, pads=(*inner, *inner))
    per_group = channels // groups
    weights = (2, 2, per_group, outputs) if is_last else (outputs, per_group, 2, 2)
    operands = [value, builder.constant(values(weights, 1))]
    if draw(st.booleans()):
        operands.append(builder.constant(values((outputs,), 2)))
    value = builder.add(
        "Conv", *operands, groups=groups, layout="NHWC" if is_last else "NCHW",
        pads=draw(st.sampled_from([(0, 0, 0, 0), (1, 0, 0, 1)])),
    )  # fmt: skip
    spread = (outputs,) if is_last else (outputs, 1, 1)
    for index in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["Mul", "Add", "Sub", "Div", "BatchNorm"]))
        if kind == "BatchNorm":
            parameters = [builder.constant(np.abs(values((outputs,), s)) + 0.5) for s in range(4)]
            axis = 3 if is_last else 1
            value = builder.add("BatchNorm", value, *parameters, axis=axis)
        else:
            factor = np.abs(values(draw(st.sampled_from([spread, ()])), 9 + index)) + 0.5
            value = builder.add("BinOp", value, builder.constant(factor), op=kind)
    return builder.module(value)


@given(convolutions())
def test_scales_and_shifts_end_in_the_weights(module: Module) -> None:
    made = optimise(module)
    assert opcodes(made) == ["Conv"]
    require_kept(module, made, 1e-4)


def test_a_matrix_product_with_a_bias_becomes_linear() -> None:
    chain = Chain(3, 8)
    product = chain.builder.add("MatMul", chain.x, chain.literal(8, 5))
    module = chain.builder.module(chain.op("Add", product, chain.literal(5, seed=2)))
    made = optimise(module)
    assert opcodes(made) == ["Linear"]
    require_kept(module, made)


def test_a_product_that_somebody_else_uses_is_not_changed() -> None:
    chain = Chain(3, 8)
    product = chain.builder.add("MatMul", chain.x, chain.literal(8, 5))
    scaled = chain.op("Mul", product, chain.literal(5, seed=2))
    module = chain.builder.module(scaled, product)
    made = optimise(module)
    assert sorted(opcodes(made)) == ["BinOp", "MatMul"]
    require_kept(module, made, 0.0)


def test_state_and_inputs_survive() -> None:
    builder = Builder()
    x, h = builder.input("x", "f32", (4,)), builder.input("h", "f32", (4,))
    total = builder.add("BinOp", x, h, op="Add")
    builder.state("h", total, builder.constant(np.zeros(4, np.float32)))
    module = builder.module(
        builder.add("BinOp", total, builder.add("Unary", total, op="Sigmoid"), op="Mul")
    )
    made = optimise(module)
    assert list(made.input_types) == ["x", "h"]
    assert len(made.states) == 1
    first, second = module.session(), made.session()
    for seed in range(3):
        given_inputs = {"x": values((4,), seed)}
        assert np.allclose(first.run(given_inputs)[0], second.run(given_inputs)[0], atol=1e-6)


@pytest.mark.parametrize("one", INFERENCE, ids=lambda one: one.name)
def test_a_pass_has_a_page_and_nothing_left_to_do(one: Pass) -> None:
    assert one.page.count("\n- ") >= 1
    chain = Chain(2, 4, 8)
    module = chain.builder.module(*(spelt(chain) for spelt, _ in RECOVERED))
    once = run_passes(module, [one])
    assert len(run_passes(once, [one])) == len(once)


@pytest.mark.parametrize("is_masked", [False, True])
def test_attention_stays_where_its_scale_is_0_and_rows_may_be_masked_whole(is_masked: bool) -> None:
    chain = Chain(2, 4, 8)
    keys = chain.builder.add("Transpose", chain.x, permutation=(0, 2, 1))
    scores = chain.builder.add("MatMul", chain.x, keys)
    if is_masked:
        mask = np.zeros((4, 4), np.float32)
        mask[1] = -np.inf
        scores = chain.op("Add", scores, chain.builder.constant(mask))
    else:
        scores = chain.op("Mul", scores, chain.number(0.0))
    weights = chain.builder.add("Softmax", scores, axis=-1)
    module = chain.builder.module(chain.builder.add("MatMul", weights, chain.unary("Sin", chain.x)))
    made = optimise(module)
    assert ("Attention" in opcodes(made)) == is_masked
    inputs = inputs_of(module)
    found, wanted = evaluate(made, inputs)[0], evaluate(module, inputs)[0]
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    if is_masked:
        assert not found[:, 1].any()

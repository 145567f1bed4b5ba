"""Recoveries: every spelling that models use, operands in either order, and values that stay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import pi, sqrt

import numpy as np
import pytest

from nacre.compile.legalise.stage import legalise
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import CoreOperation, Module
from nacre.core.ops import is_commutative
from nacre.core.passes.inference import INFERENCE, optimise
from nacre.core.passes.runner import run_passes
from tests.core.rewrite.test_inference import RECOVERED, Chain, opcodes, require_kept

Spelling = Callable[[Chain], int]


def gate_by_tanh(c: Chain, cube: int) -> int:
    inner = c.op("Add", c.x, c.op("Mul", cube, c.number(0.044715)))
    gate = c.unary("Tanh", c.op("Mul", c.number(sqrt(2 / pi)), inner))
    return c.op("Add", gate, c.number(1.0))


def gelu_by_tanh(c: Chain) -> int:
    gate = gate_by_tanh(c, c.op("Pow", c.x, c.number(3.0)))
    return c.op("Mul", c.op("Mul", c.number(0.5), c.x), gate)


def gelu_by_tanh_and_products(c: Chain) -> int:
    gate = gate_by_tanh(c, c.op("Mul", c.op("Mul", c.x, c.x), c.x))
    return c.op("Mul", c.x, c.op("Mul", gate, c.number(0.5)))


def gelu_with_the_half_in_the_gate(c: Chain) -> int:
    inner = c.unary("Erf", c.op("Div", c.x, c.number(sqrt(2))))
    return c.op("Mul", c.op("Mul", c.op("Add", c.number(1.0), inner), c.number(0.5)), c.x)


def gelu_in_bounds(c: Chain) -> int:
    inner = c.unary("Erf", c.op("Div", c.x, c.number(sqrt(2))))
    product = c.op("Mul", c.x, c.op("Add", inner, c.number(1.0)))
    bounded = c.builder.add("Clip", product, min=-1.0, max=4.0)
    return c.op("Mul", bounded, c.number(0.5))


def relu(c: Chain) -> int:
    above = c.builder.add("Compare", c.x, c.number(0.0), op="Gt")
    return c.builder.add("Where", above, c.x, c.number(0.0))


def mean(c: Chain) -> int:
    total = c.builder.add("Sum", c.x, axes=(1, 2), keepdims=True)
    return c.op("Mul", total, c.number(1 / 32))


def softmax(c: Chain) -> int:
    top = c.builder.add("Reduce", c.x, op="Max", axes=(-1,), keepdims=True)
    powers = c.builder.add("Exp", c.op("Sub", c.x, top))
    return c.op("Div", powers, c.builder.add("Sum", powers, axes=(-1,), keepdims=True))


def softmax_through_views(c: Chain) -> int:
    """Sums and maxima without their axis, which comes back as a view; nothing is below -inf."""
    top = c.builder.add("Reduce", c.x, op="Max", axes=(-1,))
    top = c.op("Max", c.builder.add("Reshape", top, new_shape=(2, 4, 1)), c.number(-np.inf))
    powers = c.builder.add("Exp", c.op("Sub", c.x, top))
    total = c.builder.add("Sum", powers, axes=(-1,))
    return c.op("Div", powers, c.builder.add("ExpandDims", total, axes=(2,)))


def layer_norm_by_moments(c: Chain) -> int:
    """(x - mean) * (scale / sqrt(mean of squares - square of mean + epsilon))."""
    centre = c.builder.add("Mean", c.x, axes=(-1,), keepdims=True)
    squares = c.builder.add("Mean", c.op("Mul", c.x, c.x), axes=(-1,), keepdims=True)
    variance = c.op("Max", c.op("Sub", squares, c.op("Mul", centre, centre)), c.number(0.0))
    root = c.unary("Rsqrt", c.op("Add", c.number(1e-5), variance))
    factor = c.op("Mul", root, c.literal(8, seed=3))
    return c.op("Add", c.op("Mul", c.op("Sub", c.x, centre), factor), c.literal(8, seed=4))


def layer_norm_of_turned_axes(c: Chain) -> int:
    """Along the second of three axes, with a scale and a bias that stand behind it."""
    centre = c.builder.add("Mean", c.x, axes=(1,), keepdims=True)
    centred = c.op("Sub", c.x, centre)
    variance = c.builder.add("Mean", c.op("Mul", centred, centred), axes=(1,), keepdims=True)
    root = c.unary("Sqrt", c.op("Add", variance, c.number(1e-5)))
    scaled = c.op("Mul", c.op("Div", centred, root), c.literal(4, 1, seed=3))
    return c.op("Add", c.literal(4, 1, seed=4), scaled)


def rms_norm_by_a_power(c: Chain) -> int:
    squares = c.op("Pow", c.x, c.number(2.0))
    spread = c.op("Add", c.builder.add("Mean", squares, axes=(-1,), keepdims=True), c.number(1e-6))
    return c.op("Mul", c.x, c.op("Pow", spread, c.number(-0.5)))


def length_one(c: Chain) -> int:
    root = c.builder.add("Reduce", c.x, op="L2", axes=(-1,), keepdims=True)
    return c.op("Div", c.x, c.op("Max", root, c.number(1e-12)))


SPELLINGS: list[tuple[Spelling, list[str]]] = [
    *RECOVERED,
    (gelu_by_tanh, ["Gelu"]),
    (gelu_by_tanh_and_products, ["Gelu"]),
    (gelu_with_the_half_in_the_gate, ["Gelu"]),
    (gelu_in_bounds, ["Gelu", "Clip"]),
    (relu, ["Relu"]),
    (mean, ["Mean"]),
    (softmax, ["Softmax"]),
    (softmax_through_views, ["Softmax"]),
    (layer_norm_by_moments, ["LayerNorm"]),
    (layer_norm_of_turned_axes, ["Transpose", "LayerNorm", "Transpose"]),
    (rms_norm_by_a_power, ["RmsNorm"]),
    (length_one, ["RmsNorm"]),
]
spellings = pytest.mark.parametrize(
    ("spelt", "expected"), SPELLINGS, ids=lambda part: getattr(part, "__name__", "")
)


def module_of(spelt: Spelling) -> Module:
    chain = Chain(2, 4, 8)
    return chain.builder.module(spelt(chain))


def exchange(module: Module, at: int | None = None) -> Module:
    """A module with the operands of one or all operations exchange that may be."""

    def one(index: int, op: CoreOperation) -> CoreOperation:
        is_meant = at in (None, index) and is_commutative(op.opcode, op.attributes)
        operands = op.operands[::-1] if is_meant else op.operands
        return CoreOperation(op.value_id, op.opcode, operands, op.attributes, op.type)

    return replace(module, operations=tuple(one(i, op) for i, op in enumerate(module.operations)))


@spellings
def test_a_spelling_is_recovered(spelt: Spelling, expected: list[str]) -> None:
    module = module_of(spelt)
    made = optimise(module)
    assert opcodes(made) == expected
    require_kept(module, made)


@spellings
def test_operands_may_stand_in_either_order(spelt: Spelling, expected: list[str]) -> None:
    module = module_of(spelt)
    for at in (None, *range(len(module.operations))):
        turned = exchange(module, at)
        made = run_passes(turned, INFERENCE)  # the canonical form would put them in order
        assert opcodes(made) == expected, at
    require_kept(module, made)


@spellings
def test_the_compiler_recovers_the_same(spelt: Spelling, expected: list[str]) -> None:
    made = legalise(module_of(spelt), "f16").module
    assert [name for name in opcodes(made) if name != "Reshape"] == expected


@pytest.mark.parametrize(
    ("keys", "values", "is_recovered"),
    [((2, 5, 4), (2, 5, 6), True), ((1, 5, 4), (2, 5, 6), False), ((2, 5, 4), (1, 5, 6), False)],
)
def test_an_attention_has_keys_and_values_for_every_query(
    keys: tuple[int, ...], values: tuple[int, ...], is_recovered: bool
) -> None:
    build = Builder()
    q, k, v = (
        build.input(name, "f32", shape)
        for name, shape in (("q", (2, 3, 4)), ("k", keys), ("v", values))
    )
    scores = build.add("MatMul", q, build.add("Transpose", k, permutation=(0, 2, 1)))
    scaled = build.add("BinOp", scores, build.constant(0.5, "f32"), op="Mul")
    module = build.module(build.add("MatMul", build.add("Softmax", scaled, axis=-1), v))
    made = optimise(module)
    assert ("Attention" in opcodes(made)) == is_recovered
    drawn = np.random.default_rng(5)
    inputs = {
        name: drawn.standard_normal(type_.shape).astype(np.float32)
        for name, type_ in module.input_types.items()
    }
    np.testing.assert_allclose(
        evaluate(made, inputs)[0], evaluate(module, inputs)[0], rtol=1e-5, atol=1e-6
    )


def test_a_norm_of_zeros_is_what_the_model_makes_of_them() -> None:
    chain = Chain(2, 8)
    squares = chain.op("Mul", chain.x, chain.x)
    root = chain.unary("Sqrt", chain.builder.add("Mean", squares, axes=(-1,), keepdims=True))
    is_zero = chain.builder.add("Compare", root, chain.number(0.0), op="Eq")
    guarded = chain.builder.add("Where", is_zero, chain.number(1.0), root)
    module = chain.builder.module(chain.op("Div", chain.x, root), chain.op("Div", chain.x, guarded))
    made = optimise(module)
    assert opcodes(made) == ["RmsNorm", "RmsNorm"]
    zeros = {"x": np.zeros((2, 8), np.float32)}
    for found, expected in zip(evaluate(made, zeros), evaluate(module, zeros), strict=True):
        assert np.array_equal(found, expected, equal_nan=True)


@pytest.mark.parametrize(("guard", "expected"), [(1e-12, ["RmsNorm"]), (1e-3, None)])
def test_a_guard_that_counts_stays(guard: float, expected: list[str] | None) -> None:
    chain = Chain(2, 8)
    root = chain.builder.add("Reduce", chain.x, op="L2", axes=(-1,), keepdims=True)
    module = chain.builder.module(
        chain.op("Div", chain.x, chain.op("Add", root, chain.number(guard)))
    )
    assert opcodes(optimise(module)) == (expected or ["Reduce", "BinOp", "BinOp"])

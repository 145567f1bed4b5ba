"""Scales that take into account what comes next: functions, sums with a number, softmaxes."""

from __future__ import annotations

import numpy as np
import pytest

from nacre.compile.quantise.affine import LOW, Affine
from nacre.compile.quantise.following_function import function_after
from nacre.compile.quantise.roles import Graph
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
from tests.compile.quantise.networks import numbers, samples, sqnr, stored_run
from tests.compile.quantise.test_forms import held_out, network, opcodes, quantised


def hard_swish(builder: Builder, x: int) -> int:
    """As the legaliser spells it: several operations that all begin at one value."""
    moved = builder.add("BinOp", x, builder.constant(np.float32(3.0)), op="Add")
    held = builder.add("Clip", moved, min=0.0, max=6.0)
    sixth = builder.add("BinOp", held, builder.constant(np.float32(1 / 6)), op="Mul")
    return builder.add("BinOp", x, sixth, op="Mul")


def linear(builder: Builder, x: int, cout: int, seed: int, spread: float = 1.0) -> int:
    cin = builder.type_of(x).shape[-1]
    weights = builder.constant(numbers(seed, cout, cin, spread=spread / cin**0.5))
    return builder.add("Linear", x, weights, builder.constant(numbers(seed + 1, cout)))


def test_a_scale_reaches_no_further_than_the_function_behind_it_sees() -> None:
    module = network(lambda b, x: hard_swish(b, linear(b, x, 16, 1, spread=8.0)), (64, 12))
    made = quantised(module)
    (product,) = (loss for loss in made.report.layers if loss.opcode == "Linear")
    assert product.scale is not None
    assert product.zero is not None
    lowest = (LOW - product.zero) * product.scale
    # The product goes to -20 and beyond; all that lies below -3 becomes 0.
    assert -6.0 < lowest <= -2.9
    # It is judged by what the function makes of it, not by what is rightly cut off.
    assert product.sqnr is not None
    assert product.sqnr > 30
    assert held_out(module, made) > 30


def test_the_function_behind_a_value_is_that_of_the_operations() -> None:
    module = network(lambda b, x: hard_swish(b, x), (64,))
    after = function_after(Graph(module), module.inputs[0].value_id)
    assert after is not None
    reals = numbers(5, 64, spread=4.0)
    np.testing.assert_array_equal(after(reals), evaluate(module, {"x": reals})[0])


@pytest.mark.parametrize("kind", ["an output too", "with another tensor", "nothing"])
def test_a_value_that_others_see_has_no_function_behind_it(kind: str) -> None:
    builder = Builder()
    x = builder.input("x", "f32", (8,))
    if kind == "an output too":
        module = builder.module(hard_swish(builder, x), x)
    elif kind == "with another tensor":
        other = builder.input("y", "f32", (8,))
        module = builder.module(builder.add("BinOp", x, other, op="Mul"))
    else:
        module = builder.module(x)
    assert function_after(Graph(module), x) is None


@pytest.mark.parametrize("number", [0.75, -0.4, 1.5])
def test_a_sum_with_a_number_only_moves_the_zero_point(number: float) -> None:
    def make(builder: Builder, x: int) -> int:
        moved = builder.constant(np.float32(number))
        y = builder.add("BinOp", linear(builder, x, 16, 3), moved, op="Add")
        return linear(builder, y, 8, 7)

    module = network(make, (64, 12))
    made = quantised(module)
    assert opcodes(made) == {"Input:i8": 1, "QLinear:i8": 2}
    assert held_out(module, made) > 30


def test_a_sum_that_no_zero_point_can_say_is_computed() -> None:
    def make(builder: Builder, x: int) -> int:
        y = builder.add("BinOp", x, builder.constant(np.float32(1000.0)), op="Add")
        return linear(builder, y, 8, 7)

    assert opcodes(quantised(network(make, (64, 12))))["BinOp:f32"] == 1


def test_sums_of_scales() -> None:
    found = Affine(0.1, 10)
    assert found.plus(1.0) == Affine(0.1, 0)
    assert found.plus(-1.19) == Affine(0.1, 22)
    assert found.plus(1.04) is None  # 0.4 of a step off
    assert found.plus(20.0) is None  # the zero point would be -190
    wider = found.with_step_dividing(1.05)
    assert wider.scale == pytest.approx(0.105)
    assert wider.plus(1.05) is not None
    assert wider.low <= found.low + wider.scale
    assert found.with_step_dividing(0.2) == found  # so few steps that the scale would be much wider


def test_a_softmax_takes_integers_without_their_zero_point() -> None:
    module = network(
        lambda b, x: b.add("Softmax", linear(b, x, 40, 3, spread=3.0), axis=1), (64, 12)
    )
    made = quantised(module)
    found = opcodes(made)
    assert (found["Cast:f16"], found["Dequantize:f32"], found["Softmax:f16"]) == (1, 0, 1)
    assert held_out(module, made) > 25


def test_what_is_lost_in_a_concat_is_mended_there() -> None:
    """Boxes in pixels beside probabilities; what follows takes the probabilities only."""

    def make(builder: Builder, x: int) -> int:
        y = builder.add("Unary", linear(builder, x, 9, 3), op="Sigmoid")
        boxes, scores = (
            builder.add("Slice", y, starts=(0, at), ends=(64, end), steps=(1, 1))
            for at, end in ((0, 4), (4, 9))
        )
        pixels = builder.add("BinOp", boxes, builder.constant(np.float32(320.0)), op="Mul")
        both = builder.add("Concat", pixels, scores, axis=1)
        sure, classes = (
            builder.add("Slice", both, starts=(0, at), ends=(64, end), steps=(1, 1))
            for at, end in ((4, 5), (5, 9))
        )
        wide = builder.add("Concat", *([sure] * 4), axis=1)
        return builder.add("BinOp", wide, classes, op="Mul")

    module = network(make, (64, 12))
    made = quantised(module)
    assert opcodes(made)["Concat:f16"] == 2
    assert not made.legal.notes  # it is seen before anything is lost
    for sample in samples(module, 3, seed=900):
        assert sqnr(evaluate(module, sample)[0], stored_run(made, sample)[0]) > 25


def test_operands_of_the_same_weights_share_a_scale_only_if_they_are_alike() -> None:
    """A deviation has two means, of numbers and of their squares: the same weights."""

    def deviation(b: Builder, x: int) -> int:
        shares = b.constant(np.full((1, 64), 1 / 64, np.float32))
        less = b.add("BinOp", x, b.add("Linear", x, shares), op="Sub")
        squares = b.add("BinOp", less, less, op="Mul")
        return b.add("Unary", b.add("Linear", squares, shares), op="Sqrt")

    module = network(lambda b, x: deviation(b, linear(b, x, 64, 1, spread=100.0)), (16, 12))
    assert held_out(module, quantised(module)) > 25


def test_steps_with_large_weights_share_a_scale() -> None:
    def steps(b: Builder, x: int) -> int:
        weights = b.constant(numbers(1, 96, 96, spread=0.06))
        for _ in range(3):
            x = b.add("Unary", b.add("Linear", x, weights), op="Tanh")
        return x

    module = network(steps, (4, 96))
    made = quantised(module)
    constants = [op for op in made.legal.module.operations if op.opcode.startswith("Const")]
    assert sum(op.type.shape == (96, 96) for op in constants) == 1

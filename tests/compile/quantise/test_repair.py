"""Outputs that are too far off are mended by the measure that `validate` judges them by."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.compile.accuracy.measures import (
    AGREEMENT,
    SQNR_DB,
    Accuracy,
    AccuracyMeter,
    measure_accuracy,
)
from nacre.compile.quantise.quantiser import Quantised
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module
from tests.compile.quantise.networks import numbers, samples, stored_run
from tests.compile.quantise.test_forms import held_out, network, opcodes, quantised
from tests.compile.quantise.test_sharing import linear

LEAVING = 2  # a zero point and a scale, on the way from integers to floats
SHAPE = (64, 12)


def scores(builder: Builder, x: int, offset: float) -> int:
    """Scores that lie close together, far from 0: 8 bits have few steps for their differences."""
    cin = builder.type_of(x).shape[-1]
    weights = builder.constant(numbers(3, 6, cin, spread=1 / cin**0.5))
    return builder.add("Linear", x, weights, builder.constant(np.full(6, offset, np.float32)))


def best(builder: Builder, x: int, offset: float) -> int:
    return builder.add("ArgMax", scores(builder, x, offset), axis=1)


def above(builder: Builder, x: int, offset: float) -> int:
    bound = builder.constant(np.float32(offset))
    return builder.add("Compare", scores(builder, x, offset), bound, op="Gt")


def agreed(module: Module, made: Quantised, index: int = 0) -> float:
    """The share of choices that are the float module's, on inputs that were not seen."""
    pairs = [
        (evaluate(module, sample)[index], stored_run(made, sample)[index])
        for sample in samples(module, 4, seed=900)
    ]
    return float(np.mean([a == b for a, b in pairs]))


def notes(made: Quantised, words: str) -> list[str]:
    return [note for note in made.legal.notes if words in note]


@pytest.mark.parametrize(("choose", "offset"), [(best, 60.0), (above, 120.0)])
def test_choices_are_mended(choose: Callable[[Builder, int, float], int], offset: float) -> None:
    module = network(lambda b, x: choose(b, x, offset), SHAPE)
    made = quantised(module)
    (output,) = made.report.accuracies
    assert output.measure == "agreement"
    assert output.is_met
    assert notes(made, "1 layer kept in f16")
    assert not notes(made, "agrees in")
    assert opcodes(made)["Linear:f16"] == 1
    assert agreed(module, made) > AGREEMENT["i8"]


def small_columns(builder: Builder, x: int) -> int:
    """Columns that are thousands of times smaller than others that they share a scale with."""
    sizes = np.repeat(np.array([4000.0, 1.0], np.float32), [4, 8])
    y = builder.add("Unary", linear(builder, x, 12, 3), op="Tanh")
    y = builder.add("BinOp", y, builder.constant(sizes), op="Mul")
    return builder.add("Slice", y, starts=(0, 4), ends=SHAPE, steps=(1, 1))


def test_a_ratio_of_signal_to_noise_is_mended_where_it_is_lost() -> None:
    module = network(small_columns, SHAPE)
    made = quantised(module)
    assert made.legal.notes == (
        "1 layer kept in f16: on integers of 8 bits the outputs lose too much",
    )
    assert opcodes(made)["BinOp:f16"] == 1 + LEAVING
    (output,) = made.report.accuracies
    assert (output.measure, output.value > 30) == ("SQNR", True)
    assert held_out(module, made) > 30


def many_branches(builder: Builder, x: int) -> int:
    """A sum of columns like those above, of which each branch loses a little."""
    sizes = builder.constant(np.repeat(np.array([40.0, 1.0], np.float32), [4, 8]))
    total = None
    for seed in range(8):
        y = builder.add("Unary", linear(builder, x, 12, 3 + seed), op="Tanh")
        y = builder.add("BinOp", y, sizes, op="Mul")
        y = builder.add("Slice", y, starts=(0, 4), ends=SHAPE, steps=(1, 1))
        total = y if total is None else builder.add("BinOp", total, y, op="Add")
    assert total is not None
    return total


@pytest.mark.full
def test_no_more_layers_are_mended_than_it_takes() -> None:
    module = network(many_branches, SHAPE)
    made = quantised(module)
    assert notes(made, "2 layers kept in f16")
    assert (opcodes(made)["Slice:f16"], opcodes(made)["Slice:i8"]) == (2, 6)
    assert SQNR_DB < made.report.accuracies[0].value < SQNR_DB + 3
    assert held_out(module, made) > SQNR_DB


def test_choices_are_mended_further_back_where_the_last_layer_is_not_enough() -> None:
    module = network(lambda b, x: best(b, small_columns(b, x), 0.0), SHAPE)
    made = quantised(module)
    assert notes(made, "2 layers kept in f16")
    assert (opcodes(made)["BinOp:f16"], opcodes(made)["QLinear:i8"]) == (1 + LEAVING, 1)
    assert agreed(module, made) > AGREEMENT["i8"]


def test_choices_that_are_right_stay_on_integers() -> None:
    module = network(lambda b, x: best(b, x, 0.0), SHAPE)
    made = quantised(module)
    assert not made.legal.notes
    assert opcodes(made)["QLinear:i8"] == 1
    assert agreed(module, made) > AGREEMENT["i8"]


def test_choices_that_cannot_be_mended_are_named() -> None:
    """Floats of 16 bits have steps of 0.5 there, and no choice is left."""
    module = network(lambda b, x: best(b, x, 1000.0), SHAPE)
    made = quantised(module)
    (output,) = made.report.missed_outputs
    (note,) = notes(made, "agrees in")
    assert note.startswith(
        f"output `y` agrees in {output.describe} on the calibration data, less than"
    )
    assert "less than 90 %" in note
    assert agreed(module, made) < AGREEMENT["i8"]
    assert f"output `y`: agreement {output.describe}, below 90 %" in str(made.report)


def test_a_miss_in_one_output_leaves_the_layers_of_others_alone() -> None:
    builder = Builder()
    x = builder.input("x", "f32", SHAPE)
    other = linear(builder, builder.add("Unary", linear(builder, x, 8, 11), op="Tanh"), 4, 17)
    module = builder.module(best(builder, x, 60.0), other)
    made = quantised(module)
    assert [output.measure for output in made.report.accuracies] == ["agreement", "SQNR"]
    assert not made.report.missed_outputs
    assert opcodes(made)["QLinear:i8"] == 2
    assert opcodes(made)["Linear:f16"] == 1


def test_the_report_has_what_validate_would_find() -> None:
    """Outputs that are inputs, constants, integers and floats; all samples together."""
    builder = Builder()
    x = builder.input("x", "f32", SHAPE)
    y = scores(builder, x, 0.5)
    whole = builder.add("Cast", builder.add("BinOp", y, builder.constant(np.float32(40)), op="Mul"),
                        to="i32")  # fmt: skip
    fixed = builder.constant(numbers(9, 3))
    module = builder.module(x, fixed, y, whole, builder.add("ArgMax", y, axis=1))
    made = quantised(module, count=4)
    found = [stored_run(made, sample) for sample in samples(module, 4)]
    wanted = [evaluate(module, sample) for sample in samples(module, 4)]
    for index, output in enumerate(made.report.accuracies):
        pair = (np.stack([run[index] for run in runs]) for runs in (found, wanted))
        again = measure_accuracy(output.name, module, module.outputs[index], "i8", *pair)
        assert (output.measure, output.bound) == (again.measure, again.bound)
        assert output.value == pytest.approx(again.value, rel=1e-3)
    measures = [output.measure for output in made.report.accuracies]
    assert measures == ["SQNR", "SQNR", "SQNR", "SQNR", "agreement"]


@given(st.lists(st.lists(st.integers(-3, 3), min_size=4, max_size=4), min_size=1, max_size=5))
def test_runs_count_together(runs: list[list[int]]) -> None:
    for dtype, precision in (("f32", "i8"), ("f32", "f16"), ("i32", "i8")):
        builder = Builder()
        module = builder.module(builder.input("x", dtype, (4,)))
        meter = AccuracyMeter("y", module, module.outputs[0], precision)
        expected = [np.array([3, 2, -1, 0], dtype=module.input_types["x"].element.dtype)] * len(
            runs
        )
        arrays = [np.array(run, dtype=expected[0].dtype) for run in runs]
        for array, wanted in zip(arrays, expected, strict=True):
            meter.add(array, wanted)
        whole = np.concatenate(arrays), np.concatenate(expected)
        assert meter.accuracy == measure_accuracy("y", module, module.outputs[0], precision, *whole)


@pytest.mark.parametrize(
    ("one", "margin"),
    [
        (Accuracy("y", "SQNR", 21.0, SQNR_DB), 6.0),
        (Accuracy("y", "agreement", 0.8, 0.9), -6.02),
        (Accuracy("y", "agreement", 1.0, 0.9), np.inf),
        (Accuracy("y", "agreement", 1.0, 1.0), np.inf),
        (Accuracy("y", "agreement", 0.9, 1.0), -np.inf),
        (Accuracy("y", "error", 0.001, 0.01), 20.0),
        (Accuracy("y", "error", np.inf, 0.01), -np.inf),
    ],
)
def test_how_far_an_output_is_from_its_bound(one: Accuracy, margin: float) -> None:
    assert one.margin == pytest.approx(margin, abs=0.01)
    assert one.is_met == (one.margin >= 0)


def test_what_a_function_of_floats_amplifies_is_mended_before_it() -> None:
    """Small differences of large numbers: the numbers themselves lose next to nothing."""

    def differences(builder: Builder, x: int) -> int:
        parts = []
        for seed in (3, 4):
            weights = builder.constant(numbers(seed, 12, 12, spread=0.05))
            parts.append(
                builder.add("Linear", x, weights, builder.constant(np.full(12, 20, np.float32)))
            )
        larger = builder.add("BinOp", *parts, op="Max")
        away = builder.add(
            "BinOp", larger, builder.constant(np.full(12, -20, np.float32)), op="Add"
        )
        return builder.add("BinOp", away, builder.constant(np.full(12, 8, np.float32)), op="Mul")

    module = network(differences, SHAPE)
    made = quantised(module)
    (output,) = made.report.accuracies
    assert output.is_met, output
    assert notes(made, "kept in f16")


def test_floats_beyond_f16_are_told() -> None:
    def large(builder: Builder, x: int) -> int:
        squares = builder.add("BinOp", x, builder.constant(np.float32(1e5)), op="Mul")
        return builder.add("Softmax", squares, axis=1)

    made = quantised(network(large, SHAPE))
    (note,) = notes(made, "what lies beyond 65504 is infinite")
    assert "on the calibration data" in note

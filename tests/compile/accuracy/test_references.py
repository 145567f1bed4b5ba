"""A reference that is the same everywhere, no number, or saturated proves nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import nacre
from nacre.compile.accuracy.measures import SQNR_DB, measure_accuracy
from nacre.compile.bundle.bundle import Bundle
from nacre.core.builder import Builder
from tests.compile.models import Array, values

Body = Callable[[Builder, int], int]
SHAPE = (4, 32)


def bundle_of(body: Body, precision: str = "f16") -> Bundle:
    builder = Builder()
    module = builder.module(body(builder, builder.input("x", "f32", SHAPE)))
    data = [{"x": values(SHAPE, 3)}] if precision == "i8" else None
    return nacre.compile(module, "npm4k", precision, calibration=data)  # type: ignore[arg-type]


def number(builder: Builder, value: float) -> int:
    return builder.constant(np.float32(value))


def product(builder: Builder, x: int) -> int:
    return builder.add("Linear", x, builder.constant(values((8, 32), 1)))


def rectified(builder: Builder, x: int) -> int:
    return builder.add("Relu", product(builder, x))


def steep(builder: Builder, x: int) -> int:
    scaled = builder.add("BinOp", x, number(builder, 1000.0), op="Mul")
    return builder.add("Unary", scaled, op="Sigmoid")


def sigmoid(builder: Builder, x: int) -> int:
    return builder.add("Unary", x, op="Sigmoid")


def clipped(builder: Builder, x: int) -> int:
    scaled = builder.add("BinOp", x, number(builder, 1000.0), op="Mul")
    return builder.add("Reshape", builder.add("Clip", scaled, min=-1.0, max=1.0), new_shape=(32, 4))


def divided(builder: Builder, x: int) -> int:
    return builder.add("BinOp", x, x, op="Div")


def root(builder: Builder, x: int) -> int:
    return builder.add("Unary", x, op="Sqrt")


def above(builder: Builder, x: int) -> int:
    return builder.add("Compare", x, number(builder, -100.0), op="Gt")


def chosen(builder: Builder, x: int) -> int:
    return builder.add("ArgMax", x, axis=1)


ZEROS, ONES = np.zeros(SHAPE, np.float32), np.ones(SHAPE, np.float32)
SIGNS = np.where(values(SHAPE, 2) > 0, 1, -1).astype(np.float32)


@pytest.mark.parametrize(
    ("body", "x", "problem"),
    [
        (rectified, ZEROS, "the reference is 0 everywhere"),
        (divided, 1 + np.abs(values(SHAPE, 2)), "the reference is 1 everywhere"),
        (root, -ONES, "128 of 128 elements of the reference are NaN"),
        (root, np.where(SIGNS > 0, 1, -1).astype(np.float32), "elements of the reference are NaN"),
        (steep, SIGNS, "the reference is saturated: every element is near 0 or 1"),
        (sigmoid, 7.5 * SIGNS, "the reference is saturated: every element is near 0 or 1"),
        (sigmoid, 8 + np.abs(values(SHAPE, 2)), "every element is near 0 or 1"),
        (clipped, SIGNS, "the reference is saturated: every element is -1 or 1"),
        (above, values(SHAPE, 2), "the reference is 1 everywhere"),
        (chosen, ZEROS, "the reference is 0 everywhere"),
    ],
)
def test_a_reference_that_proves_nothing_is_never_valid(body: Body, x: Array, problem: str) -> None:
    with np.errstate(all="ignore"):
        found = bundle_of(body).validate({"x": x})
    assert (found.ok, found.verdict, found.first_difference) == (False, "inconclusive", None)
    assert problem in found.unproven[0].problem
    assert problem in str(found)
    assert str(found).startswith("INCONCLUSIVE: ")
    assert "give inputs as the model will see them" in str(found)
    shown = found.as_json()
    assert (shown["ok"], shown["verdict"]) == (False, "inconclusive")
    assert problem in shown["outputs"][0]["problem"]
    assert shown["outputs"][0]["ok"] is False


@pytest.mark.parametrize("precision", ["f16", "i8"])
def test_the_same_outputs_of_other_inputs_are_valid(precision: str) -> None:
    for body in (product, rectified, chosen):
        found = bundle_of(body, precision).validate({"x": values(SHAPE, 3)})
        assert found.unproven == ()
        assert (found.ok, found.verdict) == (True, "valid")
        assert found.as_json()["outputs"][0]["problem"] is None


def test_what_is_wrong_is_not_valid_whatever_the_reference_is() -> None:
    bundle = bundle_of(rectified)
    found = bundle.validate({"x": ONES}, [np.zeros((4, 8), np.float32)])
    assert (found.verdict, found.ok) == ("not valid", False)
    assert found.unproven
    assert str(found).startswith("NOT VALID: ")


def test_one_number_and_what_no_input_changes_are_proof_enough() -> None:
    def mean(builder: Builder, x: int) -> int:
        return builder.add("Mean", x, axes=(0, 1), keepdims=True)

    assert bundle_of(mean).validate({"x": ONES}).ok
    zero = bundle_of(mean).validate({"x": ZEROS})
    assert zero.unproven[0].problem == "the reference is 0"
    builder = Builder()
    x = builder.input("x", "f32", SHAPE)
    fixed = builder.constant(np.full((3,), 7, np.int32))
    plan = nacre.compile(builder.module(builder.add("Neg", x), fixed), "npm4k")
    assert plan.validate({"x": values(SHAPE, 2)}).verdict == "valid"


def test_both_measures_are_shown_and_judged_at_every_precision() -> None:
    x = {"x": values(SHAPE, 3)}
    half, bytes_ = (bundle_of(product, p).validate(x) for p in ("f16", "i8"))
    assert (half.outputs[0].measure, bytes_.outputs[0].measure) == ("error", "SQNR")
    for found in (half, bytes_):
        (output,) = found.outputs
        assert output.error == found.error_by_output["output0"]
        assert output.sqnr == found.sqnr_by_output["output0"]
        assert {"error", "SQNR"} <= set(output.describe_with_bound.replace(",", "").split())


def test_a_steep_function_that_is_not_at_its_ends_is_no_constant() -> None:
    found = bundle_of(steep).validate({"x": values(SHAPE, 3) / 1000})
    assert (found.ok, found.unproven) == (True, ())


def test_noise_as_loud_as_a_quiet_signal_misses_the_bound_of_ratios_at_f16_too() -> None:
    """One peak hides errors of less than a hundredth of it, and that is all that the rest is."""
    builder = Builder()
    x = builder.input("x", "f32", (32, 32))
    module = builder.module(builder.add("Neg", x))
    expected = np.zeros((32, 32), np.float32)
    expected[0, 0] = 0.1
    found = expected + np.where(values((32, 32), 1) > 0, 9e-4, -9e-4).astype(np.float32)
    output = measure_accuracy("y", module, module.outputs[0], "f16", found, expected)
    assert (output.measure, output.is_met) == ("error", False)
    assert output.value < output.bound
    assert output.sqnr is not None
    assert output.sqnr < SQNR_DB
    assert measure_accuracy("y", module, module.outputs[0], "f16", expected, expected).is_met


def shifted(factor: float, offset: float) -> Body:
    def body(builder: Builder, x: int) -> int:
        small = builder.add("BinOp", x, number(builder, factor), op="Mul")
        return builder.add("BinOp", small, number(builder, offset), op="Add")

    return body


@pytest.mark.parametrize(
    ("factor", "offset", "precision"),
    [(1e-2, 1000.0, "f16"), (5e-2, 1000.0, "f16"), (1e-6, 1.0, "f16"), (1e-2, 1000.0, "i8"),
     (1e-2, -1000.0, "f16")],
)  # fmt: skip
def test_a_plan_that_keeps_nothing_of_what_varies_is_not_valid(
    factor: float, offset: float, precision: str
) -> None:
    """All of the signal is a number that every element has."""
    bundle = bundle_of(shifted(factor, offset), precision)
    validation = bundle.validate({"x": values(SHAPE, 3)})
    (output,) = validation.outputs
    assert not validation.ok
    assert validation.verdict == "inconclusive"
    assert "by less than the error" in output.problem


@pytest.mark.parametrize(("factor", "offset"), [(1.0, 100.0), (30.0, 1000.0), (0.1, 0.0)])
def test_what_varies_by_more_than_the_error_is_valid(factor: float, offset: float) -> None:
    assert bundle_of(shifted(factor, offset)).validate({"x": values(SHAPE, 3)}).ok

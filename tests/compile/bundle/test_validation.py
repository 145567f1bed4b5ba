"""Outputs are held to the model's by what their elements mean, and a miss names its bound."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nacre
from nacre.base.diagnostics import InputError
from nacre.base.elements import GRAPH_TYPES
from nacre.compile.accuracy.measures import (
    AGREEMENT,
    SQNR_DB,
    TOLERANCES,
    Accuracy,
    agreement,
    measure_accuracy,
)
from nacre.compile.bundle.validation import Validation
from nacre.core.builder import Builder
from nacre.core.module import Module
from tests.compile.models import Array, inputs_of, linear_model, values

Body = Callable[[Builder, int], int]
SHAPE = (4, 32)


def module_of(body: Body, dtype: str = "f32") -> Module:
    builder = Builder()
    return builder.module(body(builder, builder.input("x", dtype, SHAPE)))


def best(builder: Builder, x: int) -> int:
    return builder.add("ArgMax", x, axis=1)


def picked(builder: Builder, x: int) -> int:
    return builder.add("TopKIndices", x, k=3, axis=1, largest=True)


def mask(builder: Builder, x: int) -> int:
    return builder.add("Compare", x, builder.constant(np.float32(0.1)), op="Gt")


def count(builder: Builder, x: int) -> int:
    return builder.add("Sum", builder.add("Cast", mask(builder, x), to="i64"), axes=(1,))


def plain(builder: Builder, x: int) -> int:
    return builder.add("Neg", x)


def pixels(builder: Builder, x: int) -> int:
    return builder.add("Cast", builder.add("Clip", x, min=0.0, max=255.0), to="u8")


def moved(builder: Builder, x: int) -> int:
    return builder.add("BinOp", x, builder.constant(np.int32(3)), op="Add")


def looked_up(builder: Builder, x: int) -> int:
    table = builder.constant(np.arange(40, dtype=np.int32) * 7)
    return builder.add("GatherAxis", table, best(builder, x), axis=0)


@pytest.mark.parametrize(
    ("body", "dtype", "measure", "bound"),
    [
        (best, "f32", "agreement", 0.99),
        (picked, "f32", "agreement", 0.99),
        (mask, "f32", "agreement", 0.99),
        (count, "f32", "agreement", 0.99),
        (looked_up, "f32", "agreement", 0.99),
        (moved, "i32", "agreement", 1.0),
        (plain, "f32", "error", 1e-2),
        (pixels, "f32", "error", 1e-2 + 1 / 200),
    ],
)
def test_the_measure_is_that_of_what_elements_mean(
    body: Body, dtype: str, measure: str, bound: float
) -> None:
    module = module_of(body, dtype)
    found = np.full(module.output_types[0].shape, 200, module.output_types[0].element.dtype)
    one = measure_accuracy("y", module, module.outputs[0], "f16", found, found)
    assert one.measure == measure
    assert one.bound == pytest.approx(bound)
    assert one.is_met


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40))
def test_agreement_is_the_share_that_is_the_same(elements: list[int]) -> None:
    expected = np.array(elements)
    found = (expected * 5) % 3
    same = sum(a == b for a, b in zip(found.tolist(), elements, strict=True))
    assert agreement(found, expected) == pytest.approx(same / len(elements))


def test_choices_of_a_plan_are_judged_by_how_many_agree() -> None:
    """A near tie falls on the other side in f16: one of four, which relative errors cannot say."""
    module = module_of(best)
    x = values(SHAPE, 5)
    x[0, 0], x[0, 31] = 9.0, 9.0001  # equal in f16, and the first one wins
    validation = nacre.compile(module, "npm4k").validate({"x": x})
    assert validation.first_difference is None
    (output,) = validation.outputs
    assert (output.measure, output.value, output.bound) == ("agreement", 0.75, 0.99)
    assert not validation.ok
    assert validation.missed == (output,)
    assert "output0 misses its bound: agreement 75 %, at least 99 %" in str(validation)
    x[0, 31] = 9.5
    assert nacre.compile(module, "npm4k").validate({"x": x}).ok


def test_a_miss_says_which_output_and_which_bound() -> None:
    missed = Accuracy("y", "error", 0.031, 0.01), Accuracy("z", "SQNR", 12.0, 15.0)
    met = Accuracy("mask", "agreement", 0.995, 0.99)
    found = Validation(
        False, None, {"y": 0.031, "z": 0.2, "mask": 1.0}, {"y": 40.0, "z": 12.0, "mask": 3.0},
        0.01, "f16", (*missed, met),
    )  # fmt: skip
    assert str(found) == (
        "NOT VALID: the plan equals the legalised module; error of y 3.10e-02; SQNR of z 12.0 dB; "
        "agreement of mask 99.5 %; y misses its bound: error 3.10e-02, at most 1.00e-02; "
        "z misses its bound: SQNR 12.0 dB, at least 15.0 dB"
    )


def test_a_validation_as_plain_values() -> None:
    module = linear_model(8, 16, 16)
    validation = nacre.compile(module, "npm4k").validate(inputs_of(module))
    shown = json.loads(json.dumps(validation.as_json()))
    assert shown["ok"] is True
    assert shown["first_difference"] is None
    assert shown["compared_with"] == "an evaluation of the model as it came"
    (output,) = shown["outputs"]
    assert (output["name"], output["measure"], output["bound"]) == ("output0", "error", 1e-2)
    assert output["value"] == output["error"] < 1e-2
    worse = replace(validation, error_by_output={"output0": float("inf")})
    assert worse.as_json()["outputs"][0]["error"] is None


# What something else has computed


def test_outputs_of_something_else_are_taken() -> None:
    module = linear_model(8, 16, 16)
    bundle, feeds = nacre.compile(module, "npm4k"), inputs_of(module)
    right = nacre.core.evaluate(module, feeds)
    for expected in (list(right), {"output0": right[0]}):
        validation = bundle.validate(feeds, expected)
        assert validation.ok
        assert validation.compared_with == "the outputs that were given"
    assert not bundle.validate(feeds, [right[0] + 1]).ok


@pytest.mark.parametrize(
    ("expected", "told"),
    [
        ({"y": np.zeros(1)}, "other outputs than the model: found y, expected output0"),
        ([], "neither a mapping nor a list of 1 arrays"),
        ([np.zeros((2, 2))], "in the shape [2, 2], the model makes [8, 16]"),
    ],
)
def test_other_outputs_than_the_models_are_refused(expected: list[Array], told: str) -> None:
    module = linear_model(8, 16, 16)
    with pytest.raises(InputError, match="CMP04") as caught:
        nacre.compile(module, "npm4k").validate(inputs_of(module), expected)
    assert told in caught.value.diagnostics[0].message


# Models that came quantised, in floats


def rounded(builder: Builder, x: int) -> int:
    scale, zero = builder.constant(np.float32(0.05)), builder.constant(np.int8(0))
    stored = builder.add("Quantize", builder.add("Neg", x), scale, zero, to="i8")
    return builder.add("Unary", builder.add("Dequantize", stored, scale, zero), op="Tanh")


def test_a_quantised_model_in_floats_is_judged_by_its_own_rounding() -> None:
    module = module_of(rounded)
    validation = nacre.compile(module, "npm4k").validate({"x": values(SHAPE, 2)})
    (output,) = validation.outputs
    assert (output.measure, output.bound) == ("SQNR", SQNR_DB)
    assert validation.ok
    assert "rounds to integers, a step more or less of which is noise" in str(validation)


def test_the_bounds_grow_with_what_a_precision_loses() -> None:
    assert TOLERANCES["f32"] < TOLERANCES["f16"]
    assert AGREEMENT["f32"] > AGREEMENT["f16"] > AGREEMENT["i8"]


@pytest.mark.parametrize(("dtype", "bound"), [("f32", 1e-4), ("f16", 1e-2), ("bf16", 1e-2)])
def test_a_model_in_halves_is_not_finer_than_those(dtype: str, bound: float) -> None:
    module = module_of(plain, dtype)
    halves = values(SHAPE, 2).astype(GRAPH_TYPES[dtype].dtype)
    validation = nacre.compile(module, "nem_reference", "f32").validate({"x": halves})
    assert (validation.outputs[0].bound, validation.tolerance) == (bound, bound)


@pytest.mark.parametrize("elements", [np.full((40, 24), "a"), np.full((40, 24), None)])
def test_what_is_expected_are_numbers(elements: Any) -> None:  # noqa: ANN401
    module = linear_model(40, 32, 24)
    bundle = nacre.compile(module, "npm4k")
    with pytest.raises(InputError, match=r"CMP04.*in elements of .*, the model makes f32"):
        bundle.validate(inputs_of(module), [elements])

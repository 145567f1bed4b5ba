"""The builder: what it copies, what it refuses, and how."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nacre.base.diagnostics import InputError
from nacre.core.builder import Builder
from nacre.core.canonical import canonicalise
from nacre.core.evaluate import evaluate
from nacre.core.module import CoreOperation, Module, TensorType
from nacre.core.values import Attributes
from nacre.core.verify import verify


def codes(call: Any, *arguments: Any, **given: Any) -> list[str]:  # noqa: ANN401
    with pytest.raises(InputError) as caught:
        call(*arguments, **given)
    return [d.code for d in caught.value.diagnostics]


def test_a_constant_is_a_copy() -> None:
    builder = Builder()
    array = np.zeros(2, np.float32)
    module = builder.module(builder.constant(array))
    array[:] = 9
    assert evaluate(module)[0].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("array", "dtype"),
    [
        (np.array([300]), "i8"),
        (np.array([1.5]), "i32"),
        (np.array([np.nan]), "i32"),
        (np.array([1e20]), "i32"),
        (np.array([1e6]), "f16"),
        (np.array([-1]), "u8"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(array: Any, dtype: str) -> None:  # noqa: ANN401
    assert codes(Builder().constant, array, dtype) == ["CON05"]


def test_floats_are_rounded_and_lists_are_arrays() -> None:
    builder = Builder()
    module = builder.module(builder.constant([0.1, np.inf], "f16"))
    assert evaluate(module)[0].tolist() == [float(np.float16(0.1)), np.inf]


def test_operations_of_the_other_profile_and_unknown_ones_are_refused() -> None:
    builder = Builder("core-v1")
    x = builder.input("x", "f32", (2,))
    assert codes(builder.add, "Softmax", x, axis=0) == ["MOD10"]
    assert codes(builder.add, "Frobnicate", x) == ["MOD10"]
    assert codes(builder.add, "Relu", 7) == ["MOD01"]
    assert codes(Builder().constant, np.zeros(2), "zz") == ["MOD13"]
    assert codes(Builder().add, "Softmax", Builder().input("x", "f32", (2,))) == ["MOD01"]


def test_a_missing_attribute_is_refused() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (2,))
    assert codes(builder.add, "Softmax", x) == ["MOD10"]
    assert codes(builder.add, "Clip", x, min="low") == ["MOD10"]


@pytest.mark.parametrize("profile", ["core-v2", "nacre1", "", None])
def test_a_profile_that_is_none(profile: Any) -> None:  # noqa: ANN401
    with pytest.raises(ValueError, match="no profile"):
        Builder(profile)
    with pytest.raises(ValueError, match="no profile"):
        verify(Module((), ()), profile)


BROKEN: list[Any] = [
    None,
    Module(None, (1,)),  # type: ignore[arg-type]
    Module("abc", (1,)),  # type: ignore[arg-type]
    Module((None,), (1,)),  # type: ignore[arg-type]
    Module((), None),  # type: ignore[arg-type]
    Module((CoreOperation(0, "Input", (), (1,), None),), (0,)),  # type: ignore[arg-type]
    Module((), (0,), ("h",)),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("module", BROKEN, ids=range(len(BROKEN)))
def test_what_is_no_module_gets_an_answer(module: Any) -> None:  # noqa: ANN401
    assert verify(module, "nacre-1")
    with pytest.raises(InputError):
        evaluate(module)


def test_a_name_that_is_half_a_character_is_refused() -> None:
    op = CoreOperation(0, "Input", (), Attributes({"name": "\ud800"}), TensorType("f32", (2,)))
    assert [d.code for d in verify(Module((op,), (0,)))] == ["MOD08"]


def test_a_saturating_cast_to_the_same_type_stays() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (2,))
    module = builder.module(builder.add("Cast", x, to="f32", saturate=True))
    inputs = {"x": np.array([np.inf, -np.inf], np.float32)}
    assert np.isfinite(evaluate(canonicalise(module), inputs)[0]).all()

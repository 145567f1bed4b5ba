"""The builder: what it copies, what it refuses, and how."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nacre.base.diagnostics import InputError
from nacre.core.builder import Builder
from nacre.core.canonical import canonicalise
from nacre.core.evaluation.evaluate import evaluate
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


# What the rules of a module forbid


def started(profile: Any = "nacre-1") -> tuple[Builder, int]:  # noqa: ANN401
    builder = Builder(profile)
    return builder, builder.input("x", "f32", (2,))


def test_names_of_inputs_are_there_and_differ() -> None:
    builder, _ = started()
    assert codes(builder.input, "x", "f32", (2,)) == ["MOD08"]
    assert codes(builder.input, "", "f32", (2,)) == ["MOD08"]
    assert codes(builder.input, "\ud800", "f32", (2,)) == ["MOD08"]
    assert builder.input("y", "f32", (2,)) == 1, "what was refused left nothing behind"


def test_an_input_after_an_operation_is_refused() -> None:
    builder, x = started()
    builder.add("Relu", x)
    assert codes(builder.input, "y", "f32", (2,)) == ["MOD06"]
    builder = Builder()
    builder.constant([1.0])
    assert codes(builder.input, "y", "f32", (2,)) == ["MOD06"]


def test_a_module_has_outputs_that_are_defined() -> None:
    builder, x = started()
    assert codes(builder.module) == ["MOD03"]
    assert codes(builder.module, 7) == ["MOD03"]
    assert codes(builder.module, x, -1) == ["MOD03"]
    assert builder.module(x, x).outputs == (x, x)


def test_a_state_refers_to_what_is_there() -> None:
    builder, x = started()
    zero = builder.constant(np.zeros(2, np.float32))
    wide = builder.constant(np.zeros(3, np.float32))
    assert codes(builder.state, "x", x, 9) == ["MOD15"]
    assert codes(builder.state, "x", 9, zero) == ["MOD15"]
    assert codes(builder.state, "y", x, zero) == ["MOD15"]
    assert codes(builder.state, "x", x, x) == ["MOD15"]
    assert codes(builder.state, "x", x, wide) == ["MOD15"]
    builder.state("x", x, zero)
    assert codes(builder.state, "x", x, zero) == ["MOD15"]
    assert verify(builder.module(x), "nacre-1") == []


def test_core_v1_has_no_state() -> None:
    builder, x = started("core-v1")
    zero = builder.constant(np.zeros(2, np.float32))
    assert codes(builder.state, "x", x, zero) == ["MOD15"]


@pytest.mark.parametrize("operand", [0.0, True, None, [0], "0", np.int64(0)], ids=repr)
def test_what_is_no_id_is_a_type_error(operand: Any) -> None:  # noqa: ANN401
    builder, x = started()
    for call in (
        lambda: builder.add("Relu", operand),
        lambda: builder.module(operand),
        lambda: builder.state("x", operand, x),
        lambda: builder.state("x", x, operand),
    ):
        with pytest.raises(TypeError, match="expected the id of a value"):
            call()


@pytest.mark.parametrize(
    ("given", "telling"),
    [
        (("q", "f32", 2), "the shape of input `q` is of type int, expected a list of dimensions"),
        ((None, "f32", (2,)), "the name of an input is None, expected a string"),
        (("q", 32, (2,)), "the element type of input `q` is of type int"),
    ],
)
def test_an_input_of_wrong_python_types_is_a_type_error(
    given: tuple[Any, ...], telling: str
) -> None:
    with pytest.raises(TypeError, match=telling):
        Builder().input(*given)


def test_an_input_cannot_be_had_in_another_way() -> None:
    builder, _ = started()
    assert codes(builder.add, "Input", name="y") == ["MOD10"]
    assert builder.count == 1


def test_a_masked_array_is_no_constant() -> None:
    with pytest.raises(TypeError, match="masked array"):
        Builder().constant(np.ma.masked_array(np.ones(2), [True, False]))


def test_an_opcode_that_is_no_string_is_a_type_error() -> None:
    builder, x = started()
    with pytest.raises(TypeError, match="an opcode is None"):
        builder.add(None, x)  # type: ignore[arg-type]


def test_a_value_that_stands_in_for_another_is_in_no_module() -> None:
    builder, x = started()
    lost = builder.stand_in(TensorType("f32", (2,)))
    made = builder.add("BinOp", x, lost, op="Add")
    assert builder.type_of(made) == TensorType("f32", (2,))
    assert codes(builder.module, made) == ["MOD08"]

"""Numbers in the text form: the fewest digits that read back to the same bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.elements import GRAPH_TYPES
from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.core.text.printer import print_module
from nacre.core.text.reader import parse
from nacre.core.values import Literal
from nacre.core.verify import verify

Array = npt.NDArray[Any]
FLOATS = ("f8e4m3", "f8e5m2", "f16", "bf16", "f32", "f64")


def line(operation: str) -> str:
    """A module of this operation."""
    return f"{operation}\noutputs: %0\n"


def constant(array: Array, dtype: str) -> Module:
    build = Builder()
    return build.module(build.constant(array, dtype))


def raw_floats(dtype: str) -> st.SearchStrategy[Array]:
    """Elements of a type by their bits; one NaN stands for all."""
    element = GRAPH_TYPES[dtype].dtype
    bits = st.lists(st.integers(0, 2 ** (8 * element.itemsize) - 1), min_size=1, max_size=20)

    def made(given: list[int]) -> Array:
        array = np.array(given, f"u{element.itemsize}").view(element)
        with np.errstate(invalid="ignore"):  # ml_dtypes warns of signalling ones
            return np.where(np.isnan(array), np.array(np.nan).astype(element), array)

    return bits.map(made)


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_read_back_to_the_same_bits(dtype: str) -> None:
    @given(raw_floats(dtype))
    def check(array: Array) -> None:
        module = constant(array, dtype)
        assert parse(print_module(module)) == module

    check()


@pytest.mark.parametrize(
    ("dtype", "bits"), [("bf16", 0x7F81), ("f16", 0x7C01), ("f32", 0x7F800001)]
)
def test_a_signalling_nan_is_printed_without_a_warning(dtype: str, bits: int) -> None:
    element = GRAPH_TYPES[dtype].dtype
    array = np.array([bits], f"u{element.itemsize}").view(element)
    assert "data=[nan]" in print_module(constant(array, dtype))


@pytest.mark.full
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f8e4m3", "f8e5m2"])
def test_every_narrow_float_reads_back(dtype: str) -> None:
    element = GRAPH_TYPES[dtype].dtype
    raw = np.arange(2 ** (8 * element.itemsize), dtype=f"u{element.itemsize}").view(element)
    module = constant(raw[~np.isnan(raw.astype(np.float32))], dtype)
    assert parse(print_module(module)) == module


@pytest.mark.parametrize(
    ("dtype", "value", "text"),
    [
        ("f32", 0.1, "0.1"),
        ("f16", 0.1, "0.1"),
        ("bf16", 0.1, "0.1"),
        ("f8e4m3", 0.1, "0.1"),
        ("f64", 0.1, "0.1"),
        ("f32", 16777216.0, "16777216.0"),
        ("f32", 1e-45, "1e-45"),  # the least one above zero
        ("f64", 5e-324, "5e-324"),
        ("f16", 6e-8, "6e-08"),
        ("bf16", 9.2e-41, "9e-41"),
        ("f32", 3.4028235e38, "3.4028235e+38"),
        ("bf16", 1.0, "1.0"),
        ("f32", -0.0, "-0.0"),
        ("bf16", -0.0, "-0.0"),
        ("f64", math.nan, "nan"),
        ("f16", math.inf, "inf"),
        ("bf16", -math.inf, "-inf"),
        ("bool", True, "true"),
        ("i4", -8, "-8"),
        ("u4", 15, "15"),
        ("i64", -(2**63), "-9223372036854775808"),
    ],
)
def test_numbers_are_printed_with_the_fewest_digits(dtype: str, value: float, text: str) -> None:
    module = constant(np.array([value]).astype(GRAPH_TYPES[dtype].dtype), dtype)
    printed = print_module(module)
    assert f"{{data=[{text}], dtype={dtype}, shape=[1]}}" in printed
    assert parse(printed) == module


# `np.ascontiguousarray` in `Literal` makes one axis of none.
@pytest.mark.parametrize("text", ["4.5", "-0.0", "nan"])
def test_a_literal_without_axes_is_a_number(text: str) -> None:
    canonical = line(f"%0 = ConstTensor () {{data={text}, dtype=f32, shape=[]}} : tensor<f32[]>")
    module = parse(canonical)
    assert verify(module) == []
    assert print_module(module) == canonical


@pytest.mark.parametrize("opcode", ["ConstF32", "ConstF64"])
@pytest.mark.parametrize(
    "text", ["nan", "inf", "-inf", "-0.0", "0.0", "5e-324", "-2.5e-300", "0.1"]
)
def test_scalar_floats_keep_their_sign_and_digits(opcode: str, text: str) -> None:
    canonical = line(f"%0 = {opcode} () {{value={text}}} : tensor<{opcode[5:].lower()}[]>")
    assert print_module(parse(canonical)) == canonical
    assert parse(canonical) == parse(canonical)


def test_an_integer_is_read_as_a_float_where_one_is_asked_for() -> None:
    module = parse(line("%0 = ConstF64 () {value=3} : tensor<f64[]>"))
    assert print_module(module) == line("%0 = ConstF64 () {value=3.0} : tensor<f64[]>")


def test_a_literal_may_hold_integers_beyond_64_bits_if_it_is_of_floats() -> None:
    big = 10**38
    text = f"%0 = ConstTensor () {{data=[{big}, 1], dtype=f64, shape=[2]}} : tensor<f64[2]>"
    data = parse(line(text)).operations[0].attributes["data"]
    assert isinstance(data, Literal)
    assert data.array.tolist() == [1e38, 1.0]


@pytest.mark.parametrize(
    ("dtype", "data"),
    [
        ("f32", "[1e39]"),
        ("f16", "[65520.0]"),
        ("f8e4m3", "[1000.0]"),
        ("f64", "[1e400]"),
        ("f64", f"[{'9' * 5000}]"),
        ("i64", "[9223372036854775808]"),
        ("i64", f"[-{'9' * 5000}]"),
        ("i32", "[2147483648]"),
        ("i32", "[1.5]"),
        ("i4", "[8]"),
        ("i32", "[true, 2]"),
        ("f32", "[true]"),
        ("bool", "[1]"),
        ("f32", "[[1.0], [1.0, 2.0]]"),
        ("f32", '["1.0"]'),
        ("f32", "[word]"),
    ],
)
def test_what_is_no_value_of_its_type_is_left_for_the_verifier(dtype: str, data: str) -> None:
    shape = "[2]" if data.count(",") == 1 and "[[" not in data else "[1]"
    given = f"{{data={data}, dtype={dtype}, shape={shape}}}"
    op = f"%0 = ConstTensor () {given} : tensor<{dtype}{shape}>"
    found = verify(parse(line(op)), "nacre-1")
    assert {f.code for f in found} & {"CON04", "CON05", "CON06", "MOD10"}

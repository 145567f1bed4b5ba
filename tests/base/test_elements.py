from __future__ import annotations

import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.elements import ELEMENT_TYPES, ElementType, bytes_needed

EVERY_TYPE = pytest.mark.parametrize("element", ELEMENT_TYPES.values(), ids=lambda e: e.name)
INTEGERS = [e for e in ELEMENT_TYPES.values() if e.is_integer]
FLOATS = [e for e in ELEMENT_TYPES.values() if not e.is_integer]


def test_the_ten_types_of_the_language_are_there() -> None:
    signed, unsigned = ["i4", "i8", "i16", "i32"], ["u8", "u16", "u32"]
    assert list(ELEMENT_TYPES) == [*signed, *unsigned, "f16", "bf16", "f32"]


@EVERY_TYPE
def test_the_name_says_kind_and_bits(element: ElementType) -> None:
    letters = {"signed": "i", "unsigned": "u", "float": "bf" if element.name[0] == "b" else "f"}
    assert element.name == f"{letters[element.kind]}{element.bits}"
    assert element.is_integer == (element.kind != "float")


@pytest.mark.parametrize("element", INTEGERS, ids=lambda e: e.name)
def test_integer_ranges_are_those_of_numpy_and_ml_dtypes(element: ElementType) -> None:
    limits: Any = ml_dtypes.iinfo(element.dtype)  # type: ignore[no-untyped-call]
    assert (element.lowest, element.highest) == (int(limits.min), int(limits.max))
    assert element.bits == limits.bits


@pytest.mark.parametrize("element", FLOATS, ids=lambda e: e.name)
def test_float_ranges_are_those_of_numpy_and_ml_dtypes(element: ElementType) -> None:
    limits: Any = ml_dtypes.finfo(element.dtype)  # type: ignore[no-untyped-call]
    assert (element.lowest, element.highest) == (float(limits.min), float(limits.max))
    assert element.bits == limits.bits


@EVERY_TYPE
def test_one_element_of_the_array_type_holds_the_bounds(element: ElementType) -> None:
    dtype: np.dtype[Any] = element.dtype
    assert dtype.itemsize == max(1, element.bits // 8)
    bounds = np.array([element.lowest, element.highest]).astype(dtype)
    assert [float(x) for x in bounds] == [element.lowest, element.highest]


@given(st.integers(0, 10_000), st.sampled_from(list(ELEMENT_TYPES.values())))
def test_bytes_needed_is_the_least_that_holds_all_bits(count: int, element: ElementType) -> None:
    needed = bytes_needed(count, element)
    assert needed * 8 >= count * element.bits
    assert (needed - 1) * 8 < count * element.bits


def test_the_table_can_be_read_without_numpy() -> None:
    program = (
        "import sys; from nacre.base.elements import ELEMENT_TYPES; "
        "[(e.lowest, e.highest) for e in ELEMENT_TYPES.values()]; "
        "print(sorted({'numpy', 'ml_dtypes'} & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"

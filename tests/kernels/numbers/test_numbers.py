from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.elements import ELEMENT_TYPES
from nacre.kernels.interface.call import Array
from nacre.kernels.numbers import numbers
from tests.kernels.oracle_elementwise import INTEGERS, bounds

element_names = st.sampled_from(INTEGERS)


def wrap(value: int, elem: str) -> int:
    low, high = bounds(elem)
    return (value - low) % (high - low + 1) + low


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1), element_names)
def test_integers_wrap_and_saturate_as_python_does_it(values: list[int], elem: str) -> None:
    low, high = bounds(elem)
    array, element = np.array(values, np.int64), ELEMENT_TYPES[elem]
    assert numbers.wrap_to(array, element).tolist() == [wrap(v, elem) for v in values]
    assert numbers.saturate_to(array, element).tolist() == [min(max(v, low), high) for v in values]


@given(st.lists(st.floats(width=32), min_size=1), element_names)
def test_whole_floats_become_integers(values: list[float], elem: str) -> None:
    low, high = bounds(elem)
    rounded = np.rint(np.array(values, np.float32))
    element = ELEMENT_TYPES[elem]

    def saturated(v: float) -> int:
        return 0 if math.isnan(v) else low if v < low else high if v > high else int(v)

    assert numbers.real_to_integer(rounded, element).tolist() == [saturated(v) for v in rounded]
    with np.errstate(invalid="ignore"):
        found = numbers.real_to_wrapped(rounded, element).tolist()
    assert found == [wrap(int(v), elem) if math.isfinite(v) else 0 for v in rounded]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_widening_is_exact_for_every_16_bit_float(dtype: type) -> None:
    every = np.arange(1 << 16, dtype=np.uint16)
    values: Array = every.view(dtype)
    wide = numbers.widen_to_f32(values)
    assert wide.dtype == np.float32
    with np.errstate(invalid="ignore"):  # NaNs that signal do so on some processors
        np.testing.assert_array_equal(wide, values.astype(np.float32))
    np.testing.assert_array_equal(numbers.widen_to_f32(values[::-2]), wide[::-2])

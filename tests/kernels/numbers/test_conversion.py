from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.elements import ELEMENT_TYPES
from nacre.kernels.interface.call import Array, Call, Quantization
from nacre.kernels.numbers.conversion import CONVERSION
from nacre.kernels.numbers.quantization import per_tensor
from tests.kernels.oracle_elementwise import FLOATS, INTEGERS, bounds, onnx_result, run, type_of

PRIMITIVES = {row.name: row for row in CONVERSION}
ROUNDINGS: dict[str, Callable[[float], int]] = {
    "nearest_even": round,
    "toward_zero": math.trunc,
    "floor": math.floor,
    "ceil": math.ceil,
}
# Bits of precision and the exponent of the least subnormal.
FORMATS = {"f16": (11, -24), "bf16": (8, -133), "f32": (24, -149)}


def cast(values: Array, source: str, result: str, **attributes: object) -> Array:
    return run(PRIMITIVES["cast"], [values], [source, result], attributes)


def wrap(value: int, elem: str) -> int:
    low, high = bounds(elem)
    return (value - low) % (high - low + 1) + low


def clip(value: int, elem: str) -> int:
    low, high = bounds(elem)
    return min(max(value, low), high)


def nearest(value: float | int, elem: str) -> float:
    """A finite number rounded once to a float type, by exact fractions."""
    precision, least = FORMATS[elem]
    if value == 0:
        return float(value)
    exact = Fraction(value)
    unit = max(math.frexp(float(abs(exact)))[1] - precision, least)
    if abs(exact) >= Fraction(2) ** (unit + precision):  # the float above rounded up
        unit += 1
    rounded = float(round(abs(exact) / Fraction(2) ** unit) * Fraction(2) ** unit)
    return math.copysign(math.inf if rounded > ELEMENT_TYPES[elem].highest else rounded, value)


def drawn(data: st.DataObject, elem: str) -> list[int] | list[float]:
    if elem in INTEGERS:
        low, high = bounds(elem)
        near = st.sampled_from([low, high, 0, 1, 2**24 + 1, 2**30 + 2**22 + 1, 65519, 65520, 2049])
        number = st.one_of(st.integers(low, high), near.map(lambda v: clip(v, elem)))
        return data.draw(st.lists(number, min_size=1, max_size=20))
    numbers = st.one_of(st.floats(width=32), st.floats(-70000, 70000, width=32))
    return data.draw(st.lists(numbers, min_size=1, max_size=20))


@given(st.sampled_from(INTEGERS), st.sampled_from(INTEGERS), st.data())
def test_integers_wrap_between_types_or_saturate(
    source: str, result: str, data: st.DataObject
) -> None:
    values = drawn(data, source)
    array = np.array(values).astype(type_of(source, ()).dtype)
    assert cast(array, source, result).tolist() == [wrap(int(v), result) for v in values]
    found = cast(array, source, result, saturate=True)
    assert found.tolist() == [clip(int(v), result) for v in values]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("source", "result"), list(product(FLOATS, INTEGERS)))
@given(st.data())
def test_floats_round_and_saturate_or_wrap(source: str, result: str, data: st.DataObject) -> None:
    with np.errstate(over="ignore"):
        array = np.array(drawn(data, source), np.float32).astype(type_of(source, ()).dtype)
    low, high = bounds(result)
    rounding = data.draw(st.sampled_from(sorted(ROUNDINGS)))
    reals = [float(v) for v in array]
    ends = [0 if math.isnan(v) else low if v < 0 else high for v in reals]
    whole = [ROUNDINGS[rounding](v) if math.isfinite(v) else None for v in reals]
    found = cast(array, source, result, rounding=rounding).tolist()
    assert found == [e if w is None else clip(w, result) for w, e in zip(whole, ends, strict=True)]
    found = cast(array, source, result, rounding=rounding, saturate=False).tolist()
    assert found == [0 if w is None else wrap(w, result) for w in whole]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("source", "result"), list(product((*INTEGERS, *FLOATS), FLOATS)))
@given(st.data())
def test_what_becomes_a_float_is_rounded_once(
    source: str, result: str, data: st.DataObject
) -> None:
    with np.errstate(over="ignore"):
        array = np.array(drawn(data, source)).astype(type_of(source, ()).dtype)
    values = [int(v) if source in INTEGERS else float(v) for v in array]
    largest = ELEMENT_TYPES[result].highest
    plain = [nearest(v, result) if math.isfinite(v) else float(v) for v in values]
    capped = [v if math.isnan(v) else min(max(v, -largest), largest) for v in plain]
    for saturate, expected in ((False, plain), (True, capped)):
        found = cast(array, source, result, saturate=saturate).astype(np.float64)
        np.testing.assert_array_equal(found, expected)
        assert np.signbit(found[~np.isnan(found)]).tolist() == [
            math.copysign(1, v) < 0 for v in expected if not math.isnan(v)
        ]


def test_an_integer_next_to_a_tie_of_bf16_is_not_rounded_twice() -> None:
    tie = 2**30 + 2**22
    values = np.array([tie - 1, tie, tie + 1, -tie - 1, -tie, -tie + 1], np.int32)
    up, down = 2.0**30 + 2.0**23, 2.0**30
    assert cast(values, "i32", "bf16").astype(float).tolist() == [down, down, up, -up, -down, -down]


def test_casts_are_those_of_onnxruntime() -> None:
    values = np.random.default_rng(1).standard_normal(5000).astype(np.float32) * 300
    expected = onnx_result("Cast", [values], "float16", to=10)
    np.testing.assert_array_equal(cast(values, "f32", "f16"), expected)
    truncated = onnx_result("Cast", [values], "int32", to=6)
    np.testing.assert_array_equal(cast(values, "f32", "i32", rounding="toward_zero"), truncated)
    integers = np.arange(-70000, 70000, 7, dtype=np.int32)
    np.testing.assert_array_equal(
        cast(integers, "i32", "i8"), onnx_result("Cast", [integers], "int8", to=3)
    )


@pytest.mark.parametrize("axis", [None, 1])
@pytest.mark.parametrize("elem", FLOATS)
def test_quantize_widens_and_dequantize_rounds_once(elem: str, axis: int | None) -> None:
    rng = np.random.default_rng(2)
    count = 1 if axis is None else 3
    scale = np.array([0.02, 0.5, 0.031], np.float32)[:count]
    quant = Quantization(scale, np.array([3, -4, 0], np.int32)[:count], axis)
    reals = (rng.standard_normal((40, 3)) * 2).astype(type_of(elem, ()).dtype)
    stored = run(PRIMITIVES["quantize"], [reals], [elem, "i8"], quants=[None, quant])
    steps = np.rint(reals.astype(np.float32) / quant.scale) + quant.zero_point
    np.testing.assert_array_equal(stored, np.clip(steps, -128, 127))
    back = run(PRIMITIVES["dequantize"], [stored], ["i8", elem], quants=[quant, None])
    exact = (stored - quant.zero_point).astype(np.float32) * quant.scale
    np.testing.assert_array_equal(back, exact.astype(back.dtype))


def test_views_with_strides_are_read_and_written() -> None:
    type_f, type_i = type_of("f32", (4, 3)), type_of("i8", (4, 3), per_tensor(0.5))
    source = np.arange(24, dtype=np.float32).reshape(4, 6)[:, ::2]
    target = np.zeros((3, 8), np.int8)
    for name in ("cast", "quantize"):
        view = target.T[::2]
        assert PRIMITIVES[name].bind(Call((type_f,), (type_i,)))([source], [view]) is None
        np.testing.assert_array_equal(view, source if name == "cast" else source * 2)
        assert not target.T[1::2].any()


def test_shape_and_work_are_those_of_the_elements() -> None:
    row = PRIMITIVES["cast"]
    assert row.shape([(2, 3)], {}) == [(2, 3)]
    assert row.shape([None], {}) is None
    assert row.work(Call((type_of("f32", (2, 3)),), (type_of("i8", (2, 3)),))).elements == 6

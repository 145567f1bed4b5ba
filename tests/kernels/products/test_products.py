"""Exact integer products on float BLAS, at the limits where a float would begin to round."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.elements import ELEMENT_TYPES
from nacre.kernels.interface.call import Array, Quantization, TensorType
from nacre.kernels.products.products import (
    Plan,
    exact_product,
    float_product,
    mark_lost,
    ordered_product,
    plan,
    reach_of_type,
    reach_of_values,
    subtract,
    zero_points,
)


def product_of(a: Array, b: Array, chosen: Plan) -> Array:
    return exact_product(a.astype(chosen.dtype), b.astype(chosen.dtype), chosen)


reaches = st.sampled_from([1, 7, 127, 128, 255, 4096, 32768, 65535, 2**24, 2**31])


@given(st.integers(1, 700), reaches, reaches, st.booleans(), st.integers(0, 2**32))
def test_sums_of_the_largest_products_are_exact(
    depth: int, reach_a: int, reach_b: int, one_sided: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    chosen = plan(depth, reach_a, reach_b)
    signs = np.ones((2, depth), np.int64) if one_sided else rng.choice([-1, 1], (2, depth))
    a = signs * (reach_a - rng.integers(0, 2, (2, depth)))
    b = (reach_b - rng.integers(0, 2, (depth, 3))) * (1 if one_sided else -1)
    expected = a.astype(object) @ b.astype(object)
    if chosen.may_leave_i64:
        expected = (expected + 2**63) % 2**64 - 2**63
    assert np.array_equal(product_of(a, b, chosen).astype(object), expected)


@pytest.mark.parametrize(
    ("depth", "reach_a", "reach_b", "dtype", "chunk", "result"),
    [
        (1024, 128, 128, "f4", 1024, "f4"),
        (1025, 128, 128, "f4", 1024, "i4"),
        (576, 255, 128, "f4", 514, "i4"),
        (200_000, 128, 128, "f4", 1024, "i8"),
        (256, 32768, 32768, "f8", 256, "i8"),
        (1, 4096, 4096, "f4", 1, "f4"),
        (1, 4096, 4097, "f8", 1, "i4"),
        (64, 2**31, 2**31, "i8", 64, "i8"),
        (200, 2**31, 2**15, "f8", 128, "i8"),
    ],
)
def test_the_narrowest_type_that_holds_the_sums_is_chosen(
    depth: int, reach_a: int, reach_b: int, dtype: str, chunk: int, result: str
) -> None:
    chosen = plan(depth, reach_a, reach_b)
    assert (chosen.dtype.str[1:], chosen.chunk, chosen.result.str[1:]) == (dtype, chunk, result)


def test_a_sum_of_2_to_the_24_and_one_more_is_not_rounded() -> None:
    a = np.full((1, 1025), 128)
    b = np.full((1025, 1), 128)
    b[-1] = 1
    chosen = plan(1025, 128, 128)
    assert product_of(a, b, chosen).tolist() == [[2**24 + 128]]
    a[0, -1] = 1
    assert product_of(a, b, chosen).tolist() == [[2**24 + 1]]


@given(st.sampled_from(["i4", "i8", "u8", "i16", "u16", "i32", "u32"]), st.data())
def test_no_value_is_beyond_the_reach(name: str, data: st.DataObject) -> None:
    element = ELEMENT_TYPES[name]
    low, high = int(element.lowest), int(element.highest)
    values = data.draw(st.lists(st.integers(low, high), min_size=4, max_size=4))
    inside = st.integers(max(low, -(2**31)), min(high, 2**31 - 1))
    zeros = data.draw(st.lists(inside, min_size=4, max_size=4))
    quant = Quantization(np.ones(4, np.float32), np.array(zeros, np.int32), axis=0)
    type_ = TensorType(element, (4,), quant)
    stored = np.array(values, type_.dtype)
    largest = max(abs(v - z) for v, z in zip(values, zeros, strict=True))
    assert largest <= reach_of_values(type_, stored) <= reach_of_type(type_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_zero_points_of_32_bits_are_taken_off_before_rounding(dtype: type[np.generic]) -> None:
    quant = Quantization(np.ones(1, np.float32), np.array([2**31 - 1], np.int32))
    type_ = TensorType(ELEMENT_TYPES["i32"], (2,), quant)
    values = np.empty(2, dtype)
    subtract(values, np.array([2**31 - 1, 2**31 - 4], np.int32), zero_points(type_))
    assert values.tolist() == [0, -3]


def test_sums_beyond_int64_stay_the_same_modulo_2_to_the_32() -> None:
    true = [2**31 - 1, -(2**31), 2**63 + 5, -(2**64) + 7, 2**62]
    sums = np.array([(v + 2**63) % 2**64 - 2**63 for v in true], np.int64)
    marked = mark_lost(sums, np.array(true, np.float64))
    assert [int(m - v) % 2**32 for m, v in zip(marked.tolist(), true, strict=True)] == [0] * 5
    assert [-(2**31) <= m < 2**31 for m in marked.tolist()] == [True, True, False, False, False]


@given(st.integers(1, 40), st.integers(0, 2**32))
def test_an_ordered_product_rounds_every_step_in_ascending_order(depth: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((2, 3, depth), dtype=np.float32)
    b = rng.standard_normal((depth, 2), dtype=np.float32)
    y = ordered_product(a, b)
    for i, m, n in np.ndindex(2, 3, 2):
        total = np.float32(0)
        for k in range(depth):
            total = total + a[i, m, k] * b[k, n]
        assert y[i, m, n].tobytes() == total.tobytes()


def test_float_products_read_strided_and_unaligned_arrays() -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((3, 8, 10), dtype=np.float32)
    b = rng.standard_normal((5, 4), dtype=np.float32)
    loose = np.empty(b.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(b.shape)
    loose[...] = b
    assert not loose.flags.aligned
    strided = a[:, ::2, ::2]
    expected = strided.astype(np.float64) @ b.astype(np.float64)
    assert np.allclose(float_product(strided, loose), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("rows", "reach"), [(1024, 100), (1031, 4096), (3, 100)])
def test_a_large_matrix_by_a_column_is_exact_from_either_end(rows: int, reach: int) -> None:
    """It is read in parts, from the other end every second time."""
    rng = np.random.default_rng(rows)
    a = rng.integers(-reach, reach + 1, (rows, 512))
    chosen = plan(512, reach, reach)
    for _ in range(4):
        b = rng.integers(-reach, reach + 1, (512, 1))
        assert np.array_equal(product_of(a, b, chosen), (a * b[:, 0]).sum(axis=1)[:, None])

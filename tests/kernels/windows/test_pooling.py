"""Pooling against windows walked one by one in Python, and against onnxruntime."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.kernels.interface.call import Call, Quantization, Work
from nacre.kernels.numbers.quantization import dequantizer, per_tensor, quantizer
from nacre.kernels.windows.pooling import POOLING
from tests.kernels.oracle_views import (
    ELEMENTS,
    FLOATS,
    INTEGERS,
    LAYOUTS,
    Array,
    Dims,
    assert_same,
    onnx_result,
    random_values,
    result_of,
    seeds,
    tensor,
)

MAXPOOL, AVGPOOL = POOLING


@st.composite
def axes(draw: st.DrawFn, whole: bool) -> tuple[int, ...]:
    """Size, window, pads and stride along an axis, so that at least one window fits."""
    window = draw(st.integers(1, 3))
    pads = st.integers(0, window - 1 if whole else 4)
    begin, end = draw(pads), draw(pads)
    size = draw(st.integers(max(1, window - begin - end), 6))
    return size, window, begin, end, draw(st.integers(1, 3))


@st.composite
def poolings(draw: st.DrawFn, *, whole: bool = False) -> tuple[Dims, dict[str, Any]]:
    """A shape and attributes; as a whole, no window may lie in padding alone, as ONNX has it."""
    size, kernel, begins, ends, strides = zip(*(draw(axes(whole)) for _ in range(2)), strict=True)
    attributes = {"kernel_shape": kernel, "pads": begins + ends, "strides": strides}
    return (draw(st.integers(1, 2)), *size, draw(st.integers(1, 3))), attributes


class Window(list[Any]):
    """The elements of a window row by row, and the column of each."""

    def __init__(self) -> None:
        super().__init__()
        self.columns: list[int] = []


def windows(x: Array, attributes: dict[str, Any]) -> Iterator[tuple[Dims, Window]]:
    """Every place of the output and the elements of its window, row by row."""
    shape = MAXPOOL.shape([x.shape], attributes)
    assert shape is not None
    (top, left, _, _), (down, across) = attributes["pads"], attributes["strides"]
    height, width = attributes["kernel_shape"]
    for n, row, column, c in product(*(range(dim) for dim in shape[0])):
        inside = Window()
        for i, j in product(range(height), range(width)):
            h, w = row * down + i - top, column * across + j - left
            if 0 <= h < x.shape[1] and 0 <= w < x.shape[2]:
                inside.append(x[n, h, w, c])
                inside.columns.append(j)
        yield (n, row, column, c), inside


def filled(x: Array, attributes: dict[str, Any], found: dict[Dims, Any]) -> Array:
    shape = MAXPOOL.shape([x.shape], attributes)
    assert shape is not None
    y = np.empty(shape[0], x.dtype)
    for place, value in found.items():
        y[place] = value
    return y


def float_mean(elements: list[Any]) -> np.float32:
    total = np.float32(0)
    with np.errstate(all="ignore"):
        for element in elements:
            total = total + np.float32(element)
        return total / np.float32(max(len(elements), 1))


def mean_of_columns(elements: Window) -> np.float32:
    columns: dict[int, np.float32] = {}
    total = np.float32(0)
    with np.errstate(all="ignore"):
        for column, element in zip(elements.columns, elements, strict=True):
            columns[column] = columns.get(column, np.float32(0)) + np.float32(element)
        for _, value in sorted(columns.items()):
            total = total + value
        return total / np.float32(max(len(elements), 1))


@given(poolings(), st.sampled_from(INTEGERS + FLOATS), st.sampled_from(LAYOUTS), seeds)
def test_the_largest_element_of_each_window(
    case: tuple[Dims, dict[str, Any]], elem: str, layout: str, seed: int
) -> None:
    shape, attributes = case
    x = random_values(elem, shape, seed, odd=True)
    lowest = ELEMENTS[elem].lowest if elem in INTEGERS else -np.inf
    expected = {
        place: max(inside, key=lambda v: (v != v, v), default=lowest)
        for place, inside in windows(x, attributes)
    }

    found = result_of(MAXPOOL, x, tensor(elem, shape), attributes, layout=layout)

    assert_same(found, filled(x, attributes, expected))


@given(poolings(), st.sampled_from(INTEGERS), st.sampled_from(LAYOUTS), seeds)
def test_the_mean_of_integers_is_exact_and_rounded_half_to_even(
    case: tuple[Dims, dict[str, Any]], elem: str, layout: str, seed: int
) -> None:
    shape, attributes = case
    x = random_values(elem, shape, seed)
    expected = {
        place: round(Fraction(sum(int(v) for v in inside), max(len(inside), 1)))
        for place, inside in windows(x, attributes)
    }

    found = result_of(AVGPOOL, x, tensor(elem, shape), attributes, layout=layout)

    assert_same(found, filled(x, attributes, expected))


@given(poolings(), st.sampled_from(FLOATS), st.sampled_from(LAYOUTS), st.booleans(), seeds)
def test_the_mean_of_floats_has_one_order_and_is_rounded_once(
    case: tuple[Dims, dict[str, Any]], elem: str, layout: str, ordered: bool, seed: int
) -> None:
    """Ordered, row by row; else columns first, whose sums are then added."""
    shape, attributes = case
    x = random_values(elem, shape, seed, odd=True)
    mean = float_mean if ordered else mean_of_columns
    expected = {place: mean(inside) for place, inside in windows(x, attributes)}

    type_ = tensor(elem, shape)
    found = result_of(AVGPOOL, x, type_, attributes, ordered=ordered, layout=layout)

    assert_same(found, filled(x, attributes, expected))


@given(poolings(), seeds)
def test_a_mean_between_scales_is_one_of_real_values(
    case: tuple[Dims, dict[str, Any]], seed: int
) -> None:
    shape, attributes = case
    coarse, fine = per_tensor(0.5, 3), per_tensor(0.3, -7)
    x = random_values("i8", shape, seed)
    real = dequantizer(tensor("i8", shape, coarse))(x)
    means = {place: float_mean(inside) for place, inside in windows(real, attributes)}
    expected = quantizer(tensor("i8", shape, fine))(filled(real, attributes, means))

    found = result_of(AVGPOOL, x, tensor("i8", shape, coarse), attributes, quant=fine)

    assert_same(found, expected)


@given(poolings(whole=True), seeds)
def test_equal_scales_or_one_alone_leave_integers_as_they_are(
    case: tuple[Dims, dict[str, Any]], seed: int
) -> None:
    shape, attributes = case
    x = random_values("i8", shape, seed)
    plain = result_of(AVGPOOL, x, tensor("i8", shape), attributes)
    quantized = tensor("i8", shape, per_tensor(0.5, 3))

    both = result_of(AVGPOOL, x, quantized, attributes, quant=per_tensor(0.5, 3))

    assert_same(both, plain)
    assert_same(result_of(AVGPOOL, x, quantized, attributes), plain)


def test_a_window_in_padding_alone_has_the_mean_zero() -> None:
    attributes = {"kernel_shape": (1, 1), "pads": (1, 0, 0, 0), "strides": (1, 1)}
    x = np.full((1, 1, 1, 1), 5, np.int8)
    shifted, other = per_tensor(0.5, 3), per_tensor(0.25, -4)

    def mean(of: Quantization | None, to: Quantization | None) -> list[int]:
        found = result_of(AVGPOOL, x, tensor("i8", x.shape, of), attributes, quant=to)
        return [int(v) for v in found.ravel()]

    assert mean(None, None) == [0, 5]
    assert mean(shifted, shifted) == [3, 5]  # the zero point is the real value 0
    assert mean(shifted, other) == [-4, 0]


@pytest.mark.parametrize("elem", ["i8", "u8", "f16", "f32"])
@given(case=poolings(whole=True), seed=seeds)
def test_maxima_are_those_of_onnxruntime(
    elem: str, case: tuple[Dims, dict[str, Any]], seed: int
) -> None:
    shape, attributes = case
    x = random_values(elem, shape, seed)
    (expected,) = onnx_result("MaxPool", [x.transpose(0, 3, 1, 2).copy()], attributes)

    found = result_of(MAXPOOL, x, tensor(elem, shape), attributes)

    assert_same(found, expected.transpose(0, 2, 3, 1))


@given(case=poolings(whole=True), seed=seeds)
def test_means_are_within_nine_ulps_of_those_of_onnxruntime(
    case: tuple[Dims, dict[str, Any]], seed: int
) -> None:
    shape, attributes = case
    x = np.abs(random_values("f32", shape, seed))  # no cancellation, which ulps do not measure
    (expected,) = onnx_result("AveragePool", [x.transpose(0, 3, 1, 2).copy()], attributes)

    found = result_of(AVGPOOL, x, tensor("f32", shape), attributes)

    np.testing.assert_array_max_ulp(found, expected.transpose(0, 2, 3, 1), maxulp=9)


@pytest.mark.parametrize(
    ("elem", "count"), [("i4", 1), ("i8", 7), ("u16", 300), ("i32", 3), ("i64", 5)]
)
def test_means_at_the_ends_of_a_type_are_exact(elem: str, count: int) -> None:
    element = ELEMENTS[elem]
    attributes = {"kernel_shape": (1, count), "pads": (0, 0, 0, 0), "strides": (1, 1)}
    type_ = tensor(elem, (1, 1, count, 1))
    for value in (element.lowest, element.highest):
        if elem == "i64":  # sums stay within 64 bits for an eighth of the range
            value = int(value) // 8
        x = np.full(type_.shape, value, type_.dtype)
        assert result_of(AVGPOOL, x, type_, attributes).item() == value


def test_sums_too_wide_for_floats_round_half_to_even_too() -> None:
    attributes = {"kernel_shape": (1, 2), "pads": (0, 0, 0, 0), "strides": (1, 2)}
    big = 2**60 + 1
    x = np.array([big, big + 1, big, big + 2, -big, -big - 1, 1, 2]).reshape(1, 1, 8, 1)

    found = result_of(AVGPOOL, x, tensor("i64", x.shape), attributes)

    assert found.ravel().tolist() == [big + 1, big + 1, -big - 1, 2]


@pytest.mark.parametrize(
    ("shape", "changed"),
    [
        ((1, 4, 4, 1), {"kernel_shape": (5, 1)}),
        ((1, 4, 4, 1), {"kernel_shape": (0, 1)}),
        ((1, 4, 4, 1), {"strides": (0, 1)}),
        ((1, 4, 4, 1), {"strides": (1,)}),
        ((1, 4, 4, 1), {"pads": (0, 0, 0, -1)}),
        ((1, 4, 4, 1), {"pads": None}),
        ((4, 1), {}),
        ((1, 4, 1), {}),
        (None, {}),
    ],
)
def test_what_cannot_be_pooled_has_no_shape(shape: Dims | None, changed: dict[str, Any]) -> None:
    attributes = {"kernel_shape": (2, 2), "pads": (0, 0, 0, 0), "strides": (1, 1), **changed}

    assert MAXPOOL.shape([shape], attributes) is None


def test_the_work_is_every_element_of_every_window() -> None:
    attributes = {"kernel_shape": (2, 3), "pads": (0, 0, 0, 0), "strides": (1, 1)}
    call = Call((tensor("i8", (1, 4, 4, 5)),), (tensor("i8", (1, 3, 2, 5)),), attributes)

    assert MAXPOOL.work(call) == AVGPOOL.work(call) == Work(elements=30 * 6)

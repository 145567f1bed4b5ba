from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.kernels.interface.call import Array, Call
from nacre.kernels.numbers.numbers import Float32
from nacre.kernels.reductions.normalization import NORMALIZATION, ULPS
from tests.kernels.oracle_elementwise import FLOATS, onnx_result, run, type_of, ulps

PRIMITIVES = {row.name: row for row in NORMALIZATION}
EPSILON = 1e-5
NAMES = ("softmax", "log_softmax", "layernorm", "rmsnorm")


def attributes_of(name: str, axis: int) -> Mapping[str, Any]:
    return {"axis": axis} if "softmax" in name else {"axis": axis, "epsilon": EPSILON}


def computed(
    name: str, inputs: list[Array], axis: int, elem: str = "f32", ordered: bool = False
) -> Array:
    elems = [elem] * (len(inputs) + 1)
    return run(PRIMITIVES[name], inputs, elems, attributes_of(name, axis), ordered=ordered)


def naive(name: str, x: list[float], scale: list[float], bias: list[float]) -> list[float]:
    """One row in Python floats."""
    top = max(x)
    if "softmax" in name:
        total = math.fsum(math.exp(v - top) for v in x)
        if name == "softmax":
            return [math.exp(v - top) / total for v in x]
        return [v - top - math.log(total) for v in x]
    mean = math.fsum(x) / len(x) if name == "layernorm" else 0.0
    power = math.fsum((v - mean) ** 2 for v in x) / len(x)
    root = math.sqrt(power + float(np.float32(EPSILON)))
    return [(v - mean) / root * s + b for v, s, b in zip(x, scale, bias, strict=True)]


def along(name: str, x: Array, axis: int, scale: Array, bias: Array) -> Array:
    parts = scale.astype(float).tolist(), bias.astype(float).tolist()
    rows = np.moveaxis(x.astype(np.float64), axis, -1)
    flat = [naive(name, row.tolist(), *parts) for row in rows.reshape(-1, rows.shape[-1])]
    return np.moveaxis(np.array(flat).reshape(rows.shape), -1, axis)


def parameters(name: str, size: int, rng: np.random.Generator) -> tuple[Float32, Float32, int]:
    """Scale, bias, and how many of them the op takes."""
    takes = {"layernorm": 2, "rmsnorm": 1}.get(name, 0)
    scale = rng.normal(1, 0.3, size) if takes > 0 else np.ones(size)
    bias = rng.normal(0, 1, size) if takes > 1 else np.zeros(size)
    return scale.astype(np.float32), bias.astype(np.float32), takes


@pytest.mark.parametrize("name", NAMES)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.data())
def test_each_is_within_the_stated_ulps_of_a_naive_loop(
    name: str, shape: list[int], data: st.DataObject
) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    x = (rng.standard_normal(shape) * 3).astype(np.float32)
    scale, bias, takes = parameters(name, shape[axis], rng)
    exact = along(name, x, axis, scale, bias)
    unit = _unit(name, exact, axis, x, scale)
    found = computed(name, [x, scale, bias][: takes + 1], axis)
    assert ulps(found, exact, unit).max() <= ULPS[name]


def _unit(name: str, exact: Array, axis: int, x: Array, scale: Array) -> Array:
    """The greatest magnitude along the axis; of `layernorm` that before the mean is subtracted."""
    greatest: Array = np.abs(exact).max(axis=axis, keepdims=True)
    if name == "layernorm":
        wide = x.astype(np.float64)
        root = np.sqrt(wide.var(axis=axis, keepdims=True) + EPSILON)
        top = np.abs(wide).max(axis=axis, keepdims=True) / root * np.abs(scale).max()
        greatest = np.maximum(greatest, top)
    return np.broadcast_to(greatest, exact.shape)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [128, 1000, 4096])
def test_long_axes_stay_within_the_stated_ulps(name: str, size: int) -> None:
    rng = np.random.default_rng(size)
    x = (rng.standard_normal((12, size)) * 3 + 1).astype(np.float32)
    scale, bias, takes = parameters(name, size, rng)
    exact = along(name, x, -1, scale, bias)
    unit = _unit(name, exact, -1, x, scale)
    found = computed(name, [x, scale, bias][: takes + 1], -1)
    assert ulps(found, exact, unit).max() <= ULPS[name]


@pytest.mark.parametrize("elem", FLOATS)
@pytest.mark.parametrize("name", NAMES)
def test_narrow_floats_are_computed_in_f32_and_rounded_once(name: str, elem: str) -> None:
    x = np.random.default_rng(3).standard_normal((4, 5, 3)).astype(type_of(elem, ()).dtype)
    wide = computed(name, [x.astype(np.float32)], 1)
    np.testing.assert_array_equal(computed(name, [x], 1, elem), wide.astype(x.dtype))


@pytest.mark.parametrize("name", NAMES)
def test_ordered_sums_go_one_by_one_from_the_front(name: str) -> None:
    x = (np.random.default_rng(4).standard_normal((3, 50)) * 2).astype(np.float32)
    np.testing.assert_array_equal(
        computed(name, [x], 1, ordered=True), [_ordered(name, r) for r in x]
    )
    turned = computed(name, [np.ascontiguousarray(x.T)], 0, ordered=True)
    np.testing.assert_array_equal(turned.T, computed(name, [x], 1, ordered=True))


def _sum(row: Array) -> np.float32:
    total = np.float32(0)
    for value in row:
        total = np.float32(total + value)
    return total


def _ordered(name: str, row: Array) -> Array:
    count, one, epsilon = np.float32(row.size), np.float32(1), np.float32(EPSILON)
    if "softmax" in name:
        low = row - row.max()
        powers = np.exp(low.astype(np.float64)).astype(np.float32)
        log = np.float32(np.log(np.float64(_sum(powers))))
        return np.asarray(powers / _sum(powers) if name == "softmax" else low - log)
    moved = row - _sum(row) / count if name == "layernorm" else row
    return np.asarray(moved * (one / np.sqrt(_sum(moved * moved) / count + epsilon)))


@pytest.mark.parametrize("elem", ["f32", "f16"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_is_what_onnxruntime_gives(elem: str, axis: int) -> None:
    x = np.random.default_rng(5).normal(0, 4, (6, 33, 7)).astype(type_of(elem, ()).dtype)
    for name, op in (("softmax", "Softmax"), ("log_softmax", "LogSoftmax")):
        found = computed(name, [x], axis, elem)
        expected = onnx_result(op, [x], axis=axis)
        if elem == "f16":
            np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-6)
        else:
            exact = expected.astype(np.float64)
            unit = np.broadcast_to(np.abs(exact).max(axis=axis, keepdims=True), x.shape)
            assert ulps(found, exact, unit).max() <= 2 * ULPS[name]


@pytest.mark.parametrize("inputs", [2, 3])
def test_layernorm_is_what_onnxruntime_gives(inputs: int) -> None:
    rng = np.random.default_rng(6)
    x = rng.normal(1, 2, (5, 4, 64)).astype(np.float32)
    given_ = [x, *(rng.normal(1, 1, 64).astype(np.float32) for _ in range(inputs - 1))]
    expected = onnx_result("LayerNormalization", given_, axis=-1, epsilon=EPSILON).astype(float)
    unit = np.broadcast_to(np.abs(expected).max(axis=-1, keepdims=True), x.shape)
    assert ulps(computed("layernorm", given_, -1), expected, unit).max() <= 2 * ULPS["layernorm"]


def test_large_values_do_not_overflow_and_infinities_follow_ieee() -> None:
    x = np.array([[1e30, -1e30, 0], [-np.inf, 1, 1], [-np.inf] * 3, [np.inf, 0, 0]], np.float32)
    found = computed("softmax", [x], 1)
    assert found[:2].tolist() == [[1, 0, 0], [0, 0.5, 0.5]]
    assert found[2].tolist() == [0, 0, 0]  # masked whole
    assert np.isnan(found[3]).all()
    logs = computed("log_softmax", [x], 1)
    assert logs[1, 0] == -np.inf
    assert np.isnan(logs[2:]).all()
    assert np.isnan(computed("layernorm", [x], 1)[1:]).all()


@pytest.mark.parametrize("elem", FLOATS)
@pytest.mark.parametrize("name", NAMES)
def test_in_place_and_with_strides_the_result_is_the_same(name: str, elem: str) -> None:
    type_ = type_of(elem, (4, 6))
    x = np.random.default_rng(8).standard_normal((4, 6)).astype(type_.dtype)
    expected = computed(name, [x], -1, elem)
    run_ = PRIMITIVES[name].bind(Call((type_,), (type_,), attributes_of(name, -1)))
    same = x.copy()
    assert run_([same], [same]) is None
    np.testing.assert_array_equal(same, expected)
    wide = np.zeros((4, 12), x.dtype)
    wide[:, ::2] = x
    assert run_([wide[:, ::2]], [wide[:, 1::2]]) is None
    np.testing.assert_allclose(wide[:, 1::2].astype(float), expected.astype(float), rtol=1e-2)
    np.testing.assert_array_equal(wide[:, ::2], x)


def test_scale_may_be_left_out_where_bias_is_given() -> None:
    type_, vector = type_of("f32", (2, 3)), type_of("f32", (3,))
    x, bias = np.array([[1, 2, 3], [4, 6, 8]], np.float32), np.array([1, 2, 3], np.float32)
    y = np.zeros((2, 3), np.float32)
    call = Call((type_, None, vector), (type_,), {"axis": 1, "epsilon": EPSILON})
    assert PRIMITIVES["layernorm"].bind(call)([x, None, bias], [y]) is None
    np.testing.assert_array_equal(y, computed("layernorm", [x], 1) + bias)


def test_shapes_that_do_not_fit_are_told() -> None:
    norm, soft = PRIMITIVES["layernorm"], PRIMITIVES["softmax"]
    assert norm.shape([(2, 3), (3,), None], {"axis": -1}) == [(2, 3)]
    assert norm.shape([(2, 3), (2,)], {"axis": -1}) is None
    assert norm.shape([(2, 3)], {"axis": 2}) is None
    assert soft.shape([(2, 3)], {"axis": -2}) == [(2, 3)]
    assert soft.shape([None], {"axis": 0}) is None


def test_work_counts_passes_over_the_elements() -> None:
    call = Call((type_of("f32", (2, 3)),), (type_of("f32", (2, 3)),))
    assert PRIMITIVES["softmax"].work(call).elements == 18
    assert PRIMITIVES["rmsnorm"].work(call).elements == 12

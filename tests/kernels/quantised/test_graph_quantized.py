"""Between reals and integers, against naive loops and onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.elements import GRAPH_TYPES
from nacre.kernels.interface.call import Call, TensorType
from nacre.kernels.registry import PRIMITIVES
from tests.kernels.oracle_data import (
    Array,
    Dims,
    Operand,
    Use,
    computed,
    held,
    holds,
    layouts,
    made,
    reason,
    refused,
    same_bits,
    seeds,
    small,
)
from tests.kernels.oracle_views import onnx_result

STORED = ("i4", "u4", "i8", "u8", "i16", "u16", "i32")
stored_types = st.sampled_from(STORED)

X, BYTES = ("f32", (2, 3)), ("i8", (2, 3))

VALID: tuple[Use, ...] = (
    ("Quantize", (X, ("f32", (3,)), ("u4", (3,))), {"to": "u4"}),
    ("Quantize", (X, ("f32", ())), {"to": "f8e4m3"}),
    ("Dequantize", (("i4", (2, 6)), ("bf16", (2, 2)), ("i4", (2, 2))), {"block": 3}),
    ("DynamicQuantizeScale", (X,), {}),
    ("DynamicQuantizeZero", (X,), {}),
)


@pytest.mark.parametrize("use", VALID, ids=lambda use: use[0])
def test_verifies_prints_and_is_of_nacre_1(use: Use) -> None:
    holds(use)


REFUSED: tuple[tuple[Use, str, str], ...] = (
    (("Quantize", (X, ("f64", ())), {"to": "i8"}), "NCR01", "expected `f32`"),
    (("Quantize", (BYTES, ("f32", ())), {"to": "i8"}), "NCR01", "expected floats"),
    (("Quantize", (X, ("f32", ()), ("u8", ())), {"to": "i8"}), "NCR01", "expected"),
    (("Quantize", (X, ("f32", ())), {"to": "i7"}), "NCR03", "no `to` of `Quantize`"),
    (("Quantize", (X, ("f32", ())), {"to": "f32"}), "NCR02", "`to` is `f32`, expected one of"),
    (("Dequantize", (BYTES, ("f32", ()), ("u8", ())), {}), "NCR01", "expected"),
    (("Dequantize", (("f8e5m2", (2,)), ("f32", ()), ("f8e5m2", ())), {}), "NCR01", "expected"),
)


@pytest.mark.parametrize(("use", "code", "told"), REFUSED)
def test_rules_say_what_is_wrong(use: Use, code: str, told: str) -> None:
    refused(use, code, told)


HUGE = 10**30
MISFITS: tuple[tuple[str, tuple[Dims, ...], dict[str, Any], str], ...] = (
    ("Quantize", ((2, 3), (2,)), {"to": "i8"}, "[2], expected [] or, along axis 1, [3]"),
    ("Quantize", ((2, 3), (2,)), {"to": "i8", "axis": 2}, "`axis` is 2, expected -2 to 1"),
    ("Quantize", ((2, 3), (3,), ()), {"to": "i8"}, "`zero` has the shape [], expected [3]"),
    ("Quantize", ((2, 3), (), ()), {"to": "f8e4m3"}, "`zero` is given, expected none"),
    ("Quantize", ((2, 3), ()), {"to": "bool"}, "`to` is `bool`, expected one of"),
    ("Dequantize", ((), (2,)), {}, "the tensor is a scalar"),
    ("Dequantize", ((2, 5), (2, 2)), {"block": 2}, "[2, 2], expected [2, 3]"),
    ("Dequantize", ((2, 5), (2, 2)), {"block": -1}, "`block` has -1, expected at least 0"),
    ("Dequantize", ((2, 5), ()), {"block": HUGE}, "[], expected [2, 1]"),
)


@pytest.mark.parametrize(("opcode", "shapes", "given_", "told"), MISFITS)
def test_misfits(opcode: str, shapes: tuple[Dims, ...], given_: dict[str, Any], told: str) -> None:
    found = reason(opcode, shapes, **given_)
    assert found is not None
    assert told in found


def parameters(shape: Dims, dtype: str, to: str, seed: int) -> tuple[Operand, Operand]:
    """Scales of that shape and zero points of a type."""
    rng = np.random.default_rng(seed)
    elem = GRAPH_TYPES[to]
    scale = np.asarray(2.0 ** rng.integers(-3, 3, shape) * rng.uniform(1, 2, shape))
    zero = np.asarray(rng.integers(int(elem.lowest), int(elem.highest), shape, endpoint=True))
    return (dtype, scale.astype(held(dtype))), (to, zero.astype(held(to)))


def scale_shape(dims: Dims, data: st.DataObject) -> tuple[Dims, int, int]:
    """The shape of scales, the axis, the size of a block."""
    axis = data.draw(st.integers(-len(dims), len(dims) - 1))
    way = data.draw(st.sampled_from(["one", "axis", "block"]))
    if way == "one":
        return data.draw(st.sampled_from([(), (1,)])), axis, 0
    if way == "axis":
        return (dims[axis],), axis, 0
    block = data.draw(st.integers(1, 3))
    at = axis % len(dims)
    return (*dims[:at], -(-dims[axis] // block), *dims[at + 1 :]), axis, block


def entry(values: Array, place: Dims, axis: int, block: int) -> Any:  # noqa: ANN401 - a scalar
    """The scale or zero point of an element."""
    if values.size == 1 and not block:
        return values.reshape(-1)[0]
    if not block:
        return values[place[axis]]
    at = axis % len(place)
    return values[(*place[:at], place[at] // block, *place[at + 1 :])]


@given(
    st.sampled_from(["f32", "f64", "f16", "bf16", "f8e4m3"]), stored_types, small, layouts, seeds,
    st.booleans(), st.data(),
)  # fmt: skip
def test_quantize(
    dtype: str, to: str, dims: Dims, layout: str, seed: int, has_zero: bool, data: st.DataObject
) -> None:
    shape, axis, block = scale_shape(dims, data)
    x = made(dtype, dims, seed)
    scale, zero = parameters(shape, dtype, to, seed)
    given_ = {"axis": axis, "block": block, "to": to, "memory": layout}
    found = computed("Quantize", x, scale, *([zero] if has_zero else []), **given_)
    elem, wide = GRAPH_TYPES[to], np.float64 if dtype == "f64" else np.float32
    for place in np.ndindex(dims):
        with np.errstate(all="ignore"):
            ratio = float(wide(x[1][place]) / wide(entry(scale[1], place, axis, block)))
        point = int(entry(zero[1], place, axis, block)) if has_zero else 0
        low, high = int(elem.lowest), int(elem.highest)
        if ratio != ratio:
            wanted = point
        elif abs(ratio) == float("inf"):
            wanted = high if ratio > 0 else low
        else:
            wanted = min(max(round(ratio) + point, low), high)
        assert int(found[place]) == wanted


@given(st.sampled_from(["f8e4m3", "f8e5m2"]), st.sampled_from(["f32", "f16"]), small, seeds)
def test_quantize_to_narrow_floats(to: str, dtype: str, dims: Dims, seed: int) -> None:
    x = made(dtype, dims, seed)
    scale, _ = parameters((), dtype, "i8", seed)
    found = computed("Quantize", x, scale, to=to)
    most = GRAPH_TYPES[to].highest
    with np.errstate(all="ignore"):
        ratio = x[1].astype(np.float32) / scale[1].astype(np.float32)
        expected = np.clip(ratio, -most, most).astype(held(to))
    np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))
    back = computed("Dequantize", (to, found), scale)
    with np.errstate(all="ignore"):
        wanted = (found.astype(np.float32) * scale[1].astype(np.float32)).astype(held(dtype))
    same_bits(np.nan_to_num(back, nan=1.0), np.nan_to_num(wanted, nan=1.0))


@given(stored_types, st.sampled_from(["f32", "f64", "f16", "bf16"]), small, layouts, seeds,
       st.booleans(), st.data())  # fmt: skip
def test_dequantize(
    dtype: str, to: str, dims: Dims, layout: str, seed: int, has_zero: bool, data: st.DataObject
) -> None:
    shape, axis, block = scale_shape(dims, data)
    x = made(dtype, dims, seed)
    scale, zero = parameters(shape, to, dtype, seed)
    found = computed(
        "Dequantize", x, scale, *([zero] if has_zero else []), axis=axis, block=block, memory=layout
    )
    wide = np.float64 if to == "f64" else np.float32
    for place in np.ndindex(dims):
        steps = int(x[1][place]) - (int(entry(zero[1], place, axis, block)) if has_zero else 0)
        with np.errstate(over="ignore"):
            wanted = np.asarray(wide(steps) * wide(entry(scale[1], place, axis, block)))
            assert found[place] == wanted.astype(held(to))


@given(st.sampled_from(["i8", "u8", "i16", "u16"]), small, seeds, st.data())
def test_both_ways_as_onnxruntime(to: str, dims: Dims, seed: int, data: st.DataObject) -> None:
    shape, axis, block = scale_shape(dims, data)
    if block or shape == (1,):
        shape, block = (), 0
    x = made("f32", dims, seed, odd=False)
    scale, zero = parameters(shape, "f32", to, seed)
    given_ = {"axis": axis} if shape else {}
    found = computed("Quantize", x, scale, zero, to=to, **given_)
    arrays = [x[1], scale[1], zero[1]]
    (expected,) = onnx_result("QuantizeLinear", arrays, given_, [held(to)], opset=21)
    same_bits(found, expected)
    arrays = [found, scale[1], zero[1]]
    (expected,) = onnx_result("DequantizeLinear", arrays, given_, [np.float32], opset=21)
    same_bits(computed("Dequantize", (to, found), scale, zero, **given_), expected)


@given(small, seeds, st.sampled_from([-1.0, 0.0, 1.0]))
def test_dynamic_quantization_as_onnxruntime(dims: Dims, seed: int, shift: float) -> None:
    x = made("f32", dims, seed, odd=False)[1]
    x = np.abs(x) * np.float32(shift) if shift else x
    types = [np.uint8, np.float32, np.uint8]
    y, scale, zero = onnx_result("DynamicQuantizeLinear", [x], {}, types)
    our_scale = computed("DynamicQuantizeScale", ("f32", x))
    our_zero = computed("DynamicQuantizeZero", ("f32", x))
    same_bits(our_scale, np.asarray(scale))
    same_bits(our_zero, np.asarray(zero))
    found = computed("Quantize", ("f32", x), ("f32", our_scale), ("u8", our_zero), to="u8")
    same_bits(found, y)


def test_dynamic_quantization_at_the_ends() -> None:
    zeros = ("f32", np.zeros((2, 2), np.float32))
    assert computed("DynamicQuantizeScale", zeros) == 1.0
    assert computed("DynamicQuantizeZero", zeros) == 0
    for value in (np.nan, np.inf, -np.inf):
        odd = ("f64", np.array([1.0, value]))
        assert computed("DynamicQuantizeZero", odd) == 0
    halves = ("f16", np.array([-1.0, 2.0], np.float16))
    assert computed("DynamicQuantizeScale", halves) == np.float16(3 / 255)
    assert computed("DynamicQuantizeZero", halves) == 85


@pytest.mark.parametrize(
    ("opcode", "dtypes", "given_", "told"),
    [
        ("Quantize", ("f32", "f32", "u8"), {"to": "i8", "axis": 1, "block": 0}, "that of `to`"),
        ("Dequantize", ("i8", "f32", "u8"), {"axis": 1, "block": 0}, "that of the elements, `i8`"),
        ("Dequantize", ("f8e4m3", "f32", "u8"), {"axis": 1, "block": 0}, "expected none"),
    ],
)
def test_types_are_refused_when_bound(
    opcode: str, dtypes: tuple[str, ...], given_: dict[str, Any], told: str
) -> None:
    types = tuple(TensorType(GRAPH_TYPES[dtype], ()) for dtype in dtypes)
    with pytest.raises(ValueError, match=told):
        PRIMITIVES[f"core.{opcode}"].bind(Call(types, types[:1], given_))

"""Quantised operations of ONNX against onnxruntime."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.onnx.single_node import (
    Array,
    NodeModel,
    expect_same,
    onnx_type,
    opcodes,
    rng,
)

_STORED = {"i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16}
_SEEDS = st.integers(0, 2**32 - 1)
_BYTES = st.sampled_from([np.int8, np.uint8])


def _integers(seed: int, dtype: type, shape: tuple[int, ...]) -> Array:
    ends = np.iinfo(dtype)
    return rng(seed).integers(ends.min, ends.max + 1, shape).astype(dtype)


def _weights(seed: int, dtype: type, shape: tuple[int, ...]) -> Array:
    """Of 7 bits: onnxruntime's sums of u8 by i8 saturate on some processors beyond."""
    low = -64 if dtype is np.int8 else 0
    return rng(seed, 1).integers(low, low + 128, shape).astype(dtype)


def _scale(seed: int, shape: tuple[int, ...] = ()) -> Array:
    return (rng(seed, 2).uniform(0.01, 0.2, shape)).astype(np.float32)


def _reals(seed: int, shape: tuple[int, ...], dtype: object = np.float32) -> Array:
    return (rng(seed, 3).normal(size=shape) * 20).astype(np.dtype(dtype))  # type: ignore[call-overload]


@given(_SEEDS, st.sampled_from(sorted(_STORED)), st.sampled_from([10, 13, 19, 21, 23]))
def test_quantize_one_scale(seed: int, name: str, opset: int) -> None:
    dtype = _STORED[name]
    if opset < 21 and name in ("i16", "u16"):
        opset = 21
    operands = [_reals(seed, (3, 4)), _scale(seed), _integers(seed, dtype, ())]
    model = NodeModel("QuantizeLinear", operands, opset=opset, types=[onnx_type(dtype)])
    expect_same(model)


@given(_SEEDS, st.sampled_from(sorted(_STORED)), st.integers(-3, 2))
def test_quantize_along_an_axis(seed: int, name: str, axis: int) -> None:
    dtype, dims = _STORED[name], (2, 3, 4)
    operands = [
        _reals(seed, dims),
        _scale(seed, (dims[axis],)),
        _integers(seed, dtype, (dims[axis],)),
    ]
    kinds = [onnx_type(dtype)]
    expect_same(NodeModel("QuantizeLinear", operands, opset=21, types=kinds, axis=axis))


@given(_SEEDS, st.integers(0, 1), st.integers(2, 4), st.sampled_from([np.float32, np.float16]))
def test_quantize_in_blocks(seed: int, axis: int, block: int, dtype: type) -> None:
    dims = [5, 7]
    scales = list(dims)
    scales[axis] = -(-dims[axis] // block)
    operands = [
        _reals(seed, tuple(dims), dtype),
        _scale(seed, tuple(scales)).astype(dtype),
        _integers(seed, np.uint8, tuple(scales)),
    ]
    model = NodeModel("QuantizeLinear", operands, opset=21, types=[2], axis=axis, block_size=block)
    expect_same(model)


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
@pytest.mark.parametrize("saturate", [0, 1])
def test_quantize_to_floats_of_8_bits(dtype: type, saturate: int) -> None:
    x = np.array([0, 1.3, -7, 1e3, -1e3, 1e7, np.inf, -np.inf, np.nan], np.float32)
    zero: Array = np.zeros((), dtype)
    operands = [x, np.array(0.5, np.float32), zero]
    model = NodeModel(
        "QuantizeLinear", operands, opset=19, known={2}, types=[onnx_type(dtype)],
        saturate=saturate,
    )  # fmt: skip
    (found,) = model.by_module()
    wanted: Array = (x / np.float32(0.5)).astype(dtype)
    if saturate:
        most = {ml_dtypes.float8_e4m3fn: 448, ml_dtypes.float8_e5m2: 57344}[dtype]
        wanted = np.clip(x / np.float32(0.5), -most, most).astype(dtype)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.astype(np.float32), wanted.astype(np.float32))


@pytest.mark.parametrize("precision", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_quantize_divides_in_the_precision_that_is_named(precision: type) -> None:
    x, scale = _reals(5, (40,)), np.array(0.037, np.float16)
    model = NodeModel(
        "QuantizeLinear", [x, scale, np.array(3, np.int8)], opset=23, types=[3],
        precision=onnx_type(precision),
    )  # fmt: skip
    quotient = x.astype(precision) / scale.astype(precision)
    wanted = np.clip(np.rint(quotient.astype(np.float64)) + 3, -128, 127).astype(np.int8)
    np.testing.assert_array_equal(model.by_module()[0], wanted)


def test_quantize_without_a_zero_point_is_to_u8_or_to_what_is_named() -> None:
    operands = [_reals(1, (9,)), _scale(1)]
    assert NodeModel("QuantizeLinear", operands, opset=13).by_module()[0].dtype == np.uint8
    named = NodeModel("QuantizeLinear", operands, opset=21, output_dtype=onnx_type(np.int16))
    assert named.by_module()[0].dtype == np.int16


@given(
    _SEEDS, st.sampled_from([*sorted(_STORED), "i32"]), st.sampled_from([np.float32, np.float16])
)
def test_dequantize_one_scale(seed: int, name: str, real: type) -> None:
    dtype = {**_STORED, "i32": np.int32}[name]
    zero = None if name == "i32" else _integers(seed, dtype, ())
    operands: list[Array | None] = [
        _integers(seed, dtype, (3, 4)),
        _scale(seed).astype(real),
        zero,
    ]
    expect_same(NodeModel("DequantizeLinear", operands, opset=21, types=[onnx_type(real)]))


@given(_SEEDS, st.integers(-3, 2), st.sampled_from([0, 2, 3]), st.booleans())
def test_dequantize_along_an_axis(seed: int, axis: int, block: int, has_zero: bool) -> None:
    dims = [2, 3, 4]
    scales = list(dims) if block else [dims[axis]]
    if block:
        scales[axis] = -(-dims[axis] // block)
    operands: list[Array | None] = [
        _integers(seed, np.int8, tuple(dims)),
        _scale(seed, tuple(scales)),
        _integers(seed + 1, np.int8, tuple(scales)) if has_zero else None,
    ]
    attributes: dict[str, Any] = {"block_size": block} if block else {}
    expect_same(NodeModel("DequantizeLinear", operands, opset=21, axis=axis, **attributes))


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint4])
def test_dequantize_weights_of_4_bits(dtype: type) -> None:
    x: Array = np.arange(12).reshape(3, 4).astype(np.int8).astype(dtype)
    operands: list[Array | None] = [x, _scale(0, (3, 2)), np.ones((3, 2), np.int8).astype(dtype)]
    model = NodeModel("DequantizeLinear", operands, opset=21, known={0, 2}, axis=1, block_size=2)
    expect_same(model)


@pytest.mark.parametrize("name", ["int2", "uint2", "float4_e2m1fn"])
def test_dequantize_known_elements_of_types_that_core_ir_lacks(name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name))
    x, scale = np.array([0, 1, 1, 0], np.float32).astype(dtype), np.array(0.5, np.float32)
    model = NodeModel("DequantizeLinear", [x, scale], opset=25, known={0})
    np.testing.assert_array_equal(model.by_module()[0], x.astype(np.float32) * scale)


def test_dequantize_to_another_type_than_that_of_the_scale() -> None:
    x, scale = _integers(3, np.int8, (50,)), np.array(0.1, np.float32)
    model = NodeModel("DequantizeLinear", [x, scale], opset=23, output_dtype=10, types=[10])
    wanted = (x.astype(np.float32) * scale).astype(np.float16)
    np.testing.assert_array_equal(model.by_module()[0], wanted)


@given(_SEEDS, st.sampled_from([0.0, 1e-3, 1.0, 1e4]))
def test_dynamic_quantize(seed: int, width: float) -> None:
    x = (rng(seed).normal(size=(3, 5)) * width).astype(np.float32)
    outputs, types = ("y", "scale", "zero"), [2, 1, 2]
    expect_same(NodeModel("DynamicQuantizeLinear", [x], outputs=outputs, types=types))


@given(_SEEDS, _BYTES, st.booleans(), st.sampled_from([(4, 6), (2, 4, 6), (6,), (2, 1, 4, 6)]))
def test_matmul_integer(seed: int, dtype: type, has_zeros: bool, dims: tuple[int, ...]) -> None:
    a, b = _integers(seed, np.uint8, dims), _weights(seed, dtype, (6, 3))
    zeros: list[Array | None] = [_integers(seed, np.uint8, ()), _weights(seed, dtype, (3,))]
    operands = [a, b, *(zeros if has_zeros else [])]
    expect_same(NodeModel("MatMulInteger", operands, known={1, 3}, types=[6]))


@given(_SEEDS)
def test_matmul_integer_of_batches(seed: int) -> None:
    a, b = _integers(seed, np.uint8, (2, 3, 4)), _weights(seed, np.uint8, (2, 4, 5))
    zeros = [_integers(seed, np.uint8, ()), _weights(seed, np.uint8, ())]
    expect_same(NodeModel("MatMulInteger", [a, b, *zeros], types=[6]))


def test_matmul_integer_with_a_zero_point_for_each_row() -> None:
    a, b = _integers(1, np.uint8, (3, 4)), _integers(2, np.int8, (4, 2))
    zero = np.array([1, 2, 3], np.uint8)
    model = NodeModel("MatMulInteger", [a, b, zero], types=[6])
    wanted = (a.astype(np.int32) - zero[:, None].astype(np.int32)) @ b.astype(np.int32)
    np.testing.assert_array_equal(model.by_module()[0], wanted)


@given(_SEEDS, _BYTES, _BYTES, st.booleans(), st.booleans())
def test_qlinear_matmul(
    seed: int, a_type: type, b_type: type, per_column: bool, fused: bool
) -> None:
    if a_type is np.int8:
        b_type = np.int8  # what onnxruntime has
    count = (3,) if per_column else ()
    operands = [
        _integers(seed, a_type, (4, 6)), _scale(seed), _integers(seed, a_type, ()),
        _weights(seed, b_type, (6, 3)), _scale(seed, count), _weights(seed, b_type, count),
        np.array(0.9, np.float32), _integers(seed + 1, a_type, ()),
    ]  # fmt: skip
    known = {1, 2, 3, 4, 5, 6, 7} if fused else {4, 5}
    model = NodeModel("QLinearMatMul", operands, known=known, types=[onnx_type(a_type)])
    expect_same(model)
    assert ("QLinear" in opcodes(model)) == fused


@given(_SEEDS)
def test_qlinear_matmul_of_batches(seed: int) -> None:
    operands = [
        _integers(seed, np.uint8, (2, 4, 6)), _scale(seed), _integers(seed, np.uint8, ()),
        _weights(seed, np.uint8, (2, 6, 3)), _scale(seed + 1), _weights(seed, np.uint8, ()),
        np.array(0.9, np.float32), _integers(seed + 1, np.uint8, ()),
    ]  # fmt: skip
    expect_same(NodeModel("QLinearMatMul", operands, known={1, 2, 4, 5, 6, 7}, types=[2]))


@given(_SEEDS, st.booleans(), st.integers(1, 2), st.integers(1, 2), st.sampled_from([1, 2]))
def test_conv_integer(seed: int, has_zeros: bool, stride: int, pad: int, group: int) -> None:
    x, w = _integers(seed, np.uint8, (2, 4, 6, 5)), _weights(seed, np.uint8, (4, 4 // group, 3, 2))
    zeros = [_integers(seed, np.uint8, ()), _weights(seed, np.uint8, ())] if has_zeros else []
    model = NodeModel(
        "ConvInteger", [x, w, *zeros], known={1}, types=[6],
        strides=[stride, 1], pads=[pad, 0, 0, pad], group=group,
    )  # fmt: skip
    expect_same(model)


@given(_SEEDS, _BYTES, st.booleans(), st.booleans(), st.booleans(), st.sampled_from([1, 2, 4]))
def test_qlinear_conv(
    seed: int, dtype: type, has_bias: bool, per_channel: bool, fused: bool, group: int
) -> None:
    count = (4,) if per_channel else ()
    w_zero = np.zeros(count, np.int8)
    operands: list[Array | None] = [
        _integers(seed, dtype, (1, 4, 6, 5)), _scale(seed), _integers(seed, dtype, ()),
        _weights(seed, np.int8, (4, 4 // group, 3, 3)), _scale(seed, count), w_zero,
        np.array(0.7, np.float32), _integers(seed + 1, dtype, ()),
    ]  # fmt: skip
    if has_bias:
        operands.append(rng(seed).integers(-1000, 1000, 4).astype(np.int32))
    known = {1, 2, 3, 4, 5, 6, 7} if fused else {3, 5}
    model = NodeModel(
        "QLinearConv", operands, known=known, types=[onnx_type(dtype)],
        pads=[1, 1, 1, 1], strides=[2, 1], group=group,
    )  # fmt: skip
    expect_same(model)
    assert ("QConv" in opcodes(model)) == fused


def test_floats_of_8_bits_are_multiplied_as_reals() -> None:
    dtype = ml_dtypes.float8_e4m3fn
    a, b = (_reals(i, (3, 3)).astype(dtype) for i in (1, 2))
    one, zero = np.array(0.5, np.float32), np.zeros((), dtype)
    operands = [a, one, zero, b, one, zero, np.array(32, np.float32), zero]
    model = NodeModel("QLinearMatMul", operands, opset=21, known={2, 5, 7})
    product = (a.astype(np.float32) / 2) @ (b.astype(np.float32) / 2) / 32
    np.testing.assert_array_equal(model.by_module()[0], product.astype(dtype))


_X, _S = np.zeros((2, 3), np.float32), np.ones((), np.float32)


@pytest.mark.parametrize(
    ("op", "operands", "attributes", "wanted"),
    [
        ("QuantizeLinear", [_X, np.ones(2, np.float32)], {"axis": 5}, "`axis` is 5"),
        ("QuantizeLinear", [_X, np.ones((2, 3), np.float32)], {}, "`block_size` is missing"),
        ("QuantizeLinear", [_X, _S], {"output_dtype": 23}, "FLOAT4E2M1"),
        ("QuantizeLinear", [_X, _S, np.zeros((), np.int8)], {"output_dtype": 2}, "zero point has"),
        ("QuantizeLinear", [_X, np.ones((), np.int32)], {}, "are of `f32` and `i32`"),
        ("QuantizeLinear", [_X, np.ones(4, np.float32)], {}, "expected [] or"),
        ("DequantizeLinear", [np.zeros((2, 3), np.int8), np.ones(2, np.float32)],
         {"axis": 1}, "`scale` has the shape [2]"),
        ("DequantizeLinear", [np.zeros(3, np.int8), _S, np.zeros((), np.uint8)], {},
         "of `i8` and `u8`"),
        ("MatMulInteger", [np.zeros((2, 2), np.int32), np.zeros((2, 2), np.int8)], {},
         "expected i8, u8"),
        ("MatMulInteger", [np.zeros((2, 2), np.int8), np.zeros((2, 2), np.int8),
                           np.zeros(5, np.int8)], {}, "do not broadcast"),
        ("ConvInteger", [np.zeros((1, 1, 3), np.int8), np.zeros((1, 1, 2), np.int8),
                         np.zeros(2, np.int8)], {}, "expected []"),
        ("QLinearMatMul", [np.zeros((2, 2), np.int8)], {}, "has 1 operands, expected at least 8"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told(
    op: str, operands: list[Array], attributes: dict[str, Any], wanted: str
) -> None:
    assert wanted in NodeModel(op, operands, opset=21, **attributes).refused()


def test_before_opset_13_a_scale_is_one_number() -> None:
    model = NodeModel("QuantizeLinear", [_X, np.ones(3, np.float32)], opset=10)
    assert "opset 10 has one number" in model.refused()


@pytest.mark.parametrize(
    ("op", "x", "scale", "wanted"),
    [
        ("QuantizeLinear", _X, [0.0], "the scale has 0, expected finite numbers that are not 0"),
        ("QuantizeLinear", _X, [1.0, np.inf, 2.0], "the scale has inf"),
        ("DequantizeLinear", np.zeros(3, np.int8), [np.nan], "the scale has nan"),
    ],
)
def test_a_scale_that_leaves_nothing_of_a_number(
    op: str, x: Array, scale: list[float], wanted: str
) -> None:
    """As tools write them for a mask of infinities."""
    model = NodeModel(op, [x, np.array(scale, np.float32)], known=(1,), opset=13)
    assert wanted in model.refused()

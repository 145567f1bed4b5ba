"""Operations of com.microsoft against onnxruntime, which defines them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.onnx.single_node import (
    MICROSOFT,
    Array,
    NodeModel,
    expect_close,
    expect_one_step,
    expect_same,
    onnx_type,
    opcodes,
    rng,
)

pytestmark = pytest.mark.sampled(2)  # together they take long

_SEEDS = st.integers(0, 2**32 - 1)
_BYTES = st.sampled_from([np.int8, np.uint8])


def _model(op: str, operands: list[Array | None], **given: Any) -> NodeModel:  # noqa: ANN401
    return NodeModel(op, operands, domain=MICROSOFT, **given)


def _reals(seed: int, *shape: int) -> Array:
    return rng(seed, *shape).normal(size=shape).astype(np.float32)


def _stored(seed: int, dtype: type, *shape: int) -> Array:
    ends = np.iinfo(dtype)
    return rng(seed, *shape).integers(ends.min, ends.max + 1, shape).astype(dtype)


def _number(value: float) -> Array:
    return np.array(value, np.float32)


def _few(seed: int, dtype: type, *shape: int) -> Array:
    """Of 7 bits: onnxruntime's sums of u8 by i8 saturate on some processors beyond."""
    low = -64 if dtype is np.int8 else 0
    return rng(seed, *shape).integers(low, low + 128, shape).astype(dtype)


# On stored integers


@given(_SEEDS, _BYTES, st.sampled_from(["QLinearAdd", "QLinearMul"]), st.booleans())
def test_binary(seed: int, dtype: type, op: str, is_known: bool) -> None:
    operands: list[Array | None] = [
        _stored(seed, dtype, 3, 40), _number(0.0517), _stored(seed, dtype),
        _stored(seed, dtype, 40), _number(0.0313), _stored(seed + 1, dtype),
        _number(0.1071), _stored(seed + 2, dtype),
    ]  # fmt: skip
    known: set[int] = {1, 2, 4, 5, 6, 7} if is_known else set()
    model = _model(op, operands, known=known, types=[onnx_type(dtype)])
    expect_one_step(model)
    assert ("QBinOp" in opcodes(model)) == is_known


@given(
    _SEEDS, _BYTES, st.sampled_from([("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.2})])
)
def test_functions_of_stored_integers(
    seed: int, dtype: type, given: tuple[str, dict[str, Any]]
) -> None:
    operands: list[Array | None] = [
        _stored(seed, dtype, 4, 30), _number(0.05), _stored(seed, dtype),
        _number(1 / 255), _stored(seed + 1, dtype),
    ]  # fmt: skip
    known = {1, 2, 3, 4}  # onnxruntime makes its table from constants
    expect_one_step(_model(given[0], operands, known=known, types=[onnx_type(dtype)], **given[1]))


@given(_SEEDS, _BYTES)
def test_concat_of_different_scales(seed: int, dtype: type) -> None:
    operands: list[Array | None] = [_number(0.1), _stored(seed, dtype)]
    for index, (scale, rows) in enumerate(((0.1, 2), (0.07, 3), (0.3, 1))):
        zero = operands[1] if index == 0 else _stored(seed + index, dtype)
        operands += [_stored(seed + index, dtype, rows, 20), _number(scale), zero]
    known = {0, 1, 3, 4, 6, 7, 9, 10}
    expect_same(_model("QLinearConcat", operands, known=known, types=[onnx_type(dtype)], axis=0))


@given(_SEEDS, _BYTES, st.integers(0, 1), st.integers(0, 1))
def test_average_pool(seed: int, dtype: type, is_last: int, counts_pads: int) -> None:
    dims = (1, 8, 7, 3) if is_last else (1, 3, 8, 7)
    operands: list[Array | None] = [
        _stored(seed, dtype, *dims), _number(0.05), _stored(seed, dtype),
        _number(0.04), _stored(seed + 1, dtype),
    ]  # fmt: skip
    model = _model(
        "QLinearAveragePool", operands, types=[onnx_type(dtype)], channels_last=is_last,
        kernel_shape=[3, 2], strides=[2, 1], pads=[1, 1, 1, 0], count_include_pad=counts_pads,
    )  # fmt: skip
    # Means of few elements, five fourths of a step each: every eighth lies halfway.
    expect_one_step(model, one_in=4)


@given(_SEEDS, _BYTES, st.integers(0, 1))
def test_global_average_pool(seed: int, dtype: type, is_last: int) -> None:
    operands: list[Array | None] = [
        _stored(seed, dtype, 2, 6, 5, 6), _number(0.05), _stored(seed, dtype),
        _number(0.01), _stored(seed + 1, dtype),
    ]  # fmt: skip
    kinds = [onnx_type(dtype)]
    expect_one_step(
        _model("QLinearGlobalAveragePool", operands, types=kinds, channels_last=is_last)
    )


@given(_SEEDS, _BYTES, st.sampled_from([(13, -1), (13, 1), (11, 1)]))
def test_softmax_of_stored_integers(seed: int, dtype: type, given: tuple[int, int]) -> None:
    low = np.iinfo(dtype).min
    operands: list[Array | None] = [
        _stored(seed, dtype, 3, 4, 5), _number(0.02), _stored(seed, dtype),
        _number(1 / 256), np.array(low, dtype),
    ]  # fmt: skip
    model = _model(
        "QLinearSoftmax", operands, known={1, 2, 3, 4}, types=[onnx_type(dtype)],
        axis=given[1], further={"opset": given[0]},
    )  # fmt: skip
    expect_one_step(model)


@given(_SEEDS, _BYTES)
def test_where_of_stored_integers(seed: int, dtype: type) -> None:
    condition = rng(seed).integers(0, 2, (3, 20)).astype(bool)
    operands: list[Array | None] = [
        condition, _stored(seed, dtype, 3, 20), _number(0.05), _stored(seed, dtype),
        _stored(seed, dtype, 20), _number(0.03), _stored(seed + 1, dtype),
        _number(0.1), _stored(seed + 2, dtype),
    ]  # fmt: skip
    known = {2, 3, 5, 6, 7, 8}
    expect_one_step(_model("QLinearWhere", operands, known=known, types=[onnx_type(dtype)]))


@given(_SEEDS, _BYTES, st.integers(0, 1), st.integers(0, 1))
def test_max_pool_with_channels_last(seed: int, dtype: type, pad: int, stride: int) -> None:
    model = _model(
        "NhwcMaxPool", [_stored(seed, dtype, 2, 6, 7, 3)], types=[onnx_type(dtype)],
        kernel_shape=[2, 3], pads=[pad, 1, 0, 1], strides=[1 + stride, 1],
    )  # fmt: skip
    expect_same(model)


def test_convolution_with_channels_last() -> None:
    operands: list[Array | None] = [
        _stored(1, np.uint8, 1, 6, 5, 4), _number(0.05), _stored(2, np.uint8),
        _few(3, np.int8, 6, 4, 3, 3), _number(0.02), np.zeros((), np.int8),
        _number(0.3), _stored(4, np.uint8),
    ]  # fmt: skip
    model = _model(
        "QLinearConv", operands, known=set(range(1, 8)), types=[2], channels_last=1,
        auto_pad="SAME_UPPER", strides=[2, 2],
    )  # fmt: skip
    expect_same(model)


@given(_SEEDS, st.booleans(), st.booleans(), st.sampled_from(["none", "row", "all"]),
       st.sampled_from([1.0, 0.5]), st.booleans())  # fmt: skip
def test_gemm_of_stored_integers(
    seed: int, trans_a: bool, trans_b: bool, bias: str, alpha: float, is_stored: bool
) -> None:
    dims = {"none": None, "row": (6,), "all": (4, 6)}[bias]
    operands: list[Array | None] = [
        _stored(seed, np.uint8, *((5, 4) if trans_a else (4, 5))), _number(0.05),
        _stored(seed, np.uint8),
        _few(seed, np.int8, *((6, 5) if trans_b else (5, 6))), _number(0.02),
        np.zeros((), np.int8),
        None if dims is None else rng(seed).integers(-999, 999, dims).astype(np.int32),
    ]  # fmt: skip
    operands += [_number(0.3), _stored(seed + 1, np.uint8)] if is_stored else []
    model = _model(
        "QGemm", operands, known={1, 2, 4, 5, 7, 8}, types=[2 if is_stored else 1],
        transA=int(trans_a), transB=int(trans_b), alpha=alpha,
    )  # fmt: skip
    expect_same(model) if is_stored else expect_close(model)


@given(_SEEDS, st.booleans(), st.booleans(), st.booleans())
def test_integers_to_reals(seed: int, per_column: bool, has_zeros: bool, has_bias: bool) -> None:
    count = (3,) if per_column else ()
    scale = rng(seed).uniform(0.01, 0.1, count).astype(np.float32)
    operands: list[Array | None] = [
        _stored(seed, np.uint8, 2, 4, 5), _few(seed, np.int8, 5, 3), _number(0.05), scale,
        _stored(seed, np.uint8) if has_zeros else None,
        _few(seed + 1, np.int8, *count) if has_zeros else None,
        _reals(seed, 3) if has_bias else None,
    ]  # fmt: skip
    expect_close(_model("MatMulIntegerToFloat", operands, known={1, 3, 5}))


@given(_SEEDS, st.booleans(), st.booleans())
def test_reals_quantised_by_their_range(seed: int, per_column: bool, has_bias: bool) -> None:
    count = (3,) if per_column else ()
    scale = rng(seed).uniform(0.01, 0.1, count).astype(np.float32)
    operands: list[Array | None] = [
        _reals(seed, 4, 5), _few(seed, np.int8, 5, 3), scale, _few(seed, np.int8, *count),
        _reals(seed, 3) if has_bias else None,
    ]  # fmt: skip
    expect_close(_model("DynamicQuantizeMatMul", operands, known={1, 2, 3}))


@given(_SEEDS, st.sampled_from([2, 4, 8]), st.booleans(), st.booleans(), st.sampled_from([32, 48]))
def test_weights_of_few_bits(
    seed: int, bits: int, has_zeros: bool, has_bias: bool, depth: int
) -> None:
    width, block = 5, 32
    blocks = -(-depth // block)
    packed = _stored(seed, np.uint8, width, blocks, block * bits // 8)
    scale = rng(seed).uniform(0.01, 0.1, (width, blocks)).astype(np.float32)
    zeros = _stored(seed, np.uint8, width, -(-blocks * bits // 8)) if has_zeros else None
    bias = _reals(seed, width) if has_bias else None
    x = _reals(seed, 2, 3, depth)
    model = _model(
        "MatMulNBits", [x, packed, scale, zeros, None, bias], known={1, 2, 3, 5},
        K=depth, N=width, bits=bits, block_size=block,
    )  # fmt: skip
    fields = np.unpackbits(packed, axis=-1, bitorder="little").reshape(width, -1, bits)
    weights = (fields * (1 << np.arange(bits))).sum(-1)[:, :depth]
    points = np.full((width, blocks), 1 << (bits - 1))
    if zeros is not None:
        bits_of = np.unpackbits(zeros, axis=-1, bitorder="little")
        each = bits_of.reshape(width, -1, bits)[:, :blocks]
        points = (each * (1 << np.arange(bits))).sum(-1)
    places = np.arange(depth) // block
    real = (weights - points[:, places]) * scale[:, places].astype(np.float64)
    wanted = x.astype(np.float64) @ real.T + (0 if bias is None else bias)
    np.testing.assert_allclose(model.by_module()[0], wanted, rtol=1e-5, atol=1e-4)


# On reals


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("Relu", None),
        ("Tanh", None),
        ("Sigmoid", None),
        ("LeakyRelu", [0.3]),
        ("Clip", [-0.5, 0.7]),
        ("HardSigmoid", [0.3, 0.4]),
    ],
)
@pytest.mark.parametrize("has_sum", [False, True])
def test_fused_convolution(name: str, parameters: list[float] | None, has_sum: bool) -> None:
    operands: list[Array | None] = [
        _reals(1, 1, 3, 6, 5), _reals(2, 4, 3, 3, 3), _reals(3, 4),
        _reals(4, 1, 4, 6, 5) if has_sum else None,
    ]  # fmt: skip
    given: dict[str, Any] = {} if parameters is None else {"activation_params": parameters}
    expect_close(_model("FusedConv", operands, activation=name, pads=[1] * 4, **given))


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("Relu", {}),
        ("LeakyRelu", {"activation_alpha": 0.3}),
        ("Elu", {"activation_alpha": 0.7}),
        ("Tanh", {}),
    ],
)
def test_fused_gemm(name: str, given: dict[str, Any]) -> None:
    operands: list[Array | None] = [_reals(1, 4, 5), _reals(2, 6, 5), _reals(3, 6)]
    expect_close(_model("FusedGemm", operands, activation=name, transB=1, **given))


@given(_SEEDS, st.integers(0, 1), st.integers(0, 1), st.integers(0, 1), st.integers(0, 1))
def test_fused_matmul(seed: int, a: int, b: int, batch_a: int, batch_b: int) -> None:
    def side(flipped: int, batched: int, rows: int, columns: int) -> Array:
        matrix = (columns, rows) if flipped else (rows, columns)
        dims = (matrix[0], 3, matrix[1]) if batched else (3, *matrix)
        return _reals(seed, *dims)

    model = _model(
        "FusedMatMul", [side(a, batch_a, 4, 5), side(b, batch_b, 5, 6)],
        transA=a, transB=b, transBatchA=batch_a, transBatchB=batch_b, alpha=0.7,
    )  # fmt: skip
    expect_close(model)


@pytest.mark.parametrize("op", ["Gelu", "BiasGelu", "FastGelu", "QuickGelu"])
def test_gelu(op: str) -> None:
    bias = [_reals(2, 5)] if op in ("BiasGelu", "FastGelu") else []
    expect_close(_model(op, [_reals(1, 3, 4, 5), *bias]))


def test_fast_gelu_without_a_bias() -> None:
    expect_close(_model("FastGelu", [_reals(1, 3, 5)]))


@given(_SEEDS, st.booleans(), st.booleans(), st.sampled_from([(2, 3, 8), (1, 3, 8), (3, 8)]))
def test_skip_layer_norm(seed: int, has_beta: bool, has_bias: bool, skip: tuple[int, ...]) -> None:
    operands = [
        _reals(seed, 2, 3, 8), _reals(seed + 1, *skip), _reals(seed, 8),
        _reals(seed + 2, 8) if has_beta else None, _reals(seed + 3, 8) if has_bias else None,
    ]  # fmt: skip
    model = _model(
        "SkipLayerNormalization", operands, outputs=("y", "", "", "sum"), types=[1] * 4,
        epsilon=1e-5,
    )  # fmt: skip
    expect_close(model, atol=1e-4)


@given(_SEEDS, st.booleans())
def test_skip_rms_norm(seed: int, has_bias: bool) -> None:
    operands = [_reals(seed, 2, 3, 8), _reals(seed + 1, 2, 3, 8), _reals(seed, 8),
                _reals(seed + 2, 8) if has_bias else None]  # fmt: skip
    model = _model(
        "SkipSimplifiedLayerNormalization", operands, outputs=("y", "", "", "sum"), types=[1] * 4,
        epsilon=1e-5,
    )  # fmt: skip
    expect_close(model, atol=1e-4)


@given(_SEEDS, st.booleans(), st.booleans(), st.booleans())
def test_embedding(seed: int, has_segments: bool, has_mask: bool, has_places: bool) -> None:
    ids = rng(seed).integers(0, 9, (2, 4)).astype(np.int32)
    operands: list[Array | None] = [
        ids, ids % 2 if has_segments else None, _reals(seed, 9, 8), _reals(seed, 6, 8),
        _reals(seed, 2, 8) if has_segments else None, _reals(seed, 8), _reals(seed + 1, 8),
        np.array([[1, 1, 1, 0], [1, 0, 0, 0]], np.int32) if has_mask else None,
        rng(seed).integers(0, 6, (2, 4)).astype(np.int32) if has_places else None,
    ]  # fmt: skip
    model = _model(
        "EmbedLayerNormalization", operands, outputs=("y", "mask", "sum"), types=[1, 6, 1],
        epsilon=1e-5,
    )  # fmt: skip
    expect_close(model, atol=1e-4)


_X: Array = np.zeros((2, 3), np.float32)


@pytest.mark.parametrize(
    ("op", "operands", "attributes", "wanted"),
    [
        ("FusedConv", [np.zeros((1, 1, 3, 3), np.float32), np.zeros((1, 1, 2, 2), np.float32)],
         {"activation": "Cosine"}, "`activation` is `Cosine`"),
        ("SkipLayerNormalization", [_X, _X], {}, "operand 2 is missing"),
        ("BiasGelu", [_X, np.zeros(4, np.float32)], {}, "do not broadcast"),
        ("QLinearConcat", [np.ones((), np.float32), np.zeros((), np.int8)], {"axis": 0},
         "2 operands"),
        ("MatMulNBits", [_X, np.zeros((2, 1, 8), np.uint8), np.ones((2, 1), np.float32)],
         {"K": 3, "N": 2, "bits": 3, "block_size": 16}, "`bits` is 3"),
        ("BeamSearch", [_X], {}, "not known"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told(
    op: str, operands: list[Array | None], attributes: dict[str, Any], wanted: str
) -> None:
    assert wanted in _model(op, operands, **attributes).refused()

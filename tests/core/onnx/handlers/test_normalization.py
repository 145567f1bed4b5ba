"""Normalisations of ONNX against onnxruntime, or against their definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.onnx.single_node import Array, NodeModel, expect_close, expect_same, opcodes, rng

_SEEDS = st.integers(0, 2**32 - 1)
_DIMS = (2, 3, 4)


def _reals(seed: int, *shape: int, dtype: type = np.float32) -> Array:
    return rng(seed, *shape).normal(size=shape).astype(dtype)


@given(_SEEDS, st.integers(-3, 2), st.booleans(), st.booleans())
def test_layer_norm(seed: int, axis: int, has_bias: bool, has_moments: bool) -> None:
    dims = _DIMS[axis:]
    operands = [_reals(seed, *_DIMS), _reals(seed + 1, *dims),
                _reals(seed + 2, *dims) if has_bias else None]  # fmt: skip
    outputs = ("y", "mean", "deviation") if has_moments else ("y",)
    model = NodeModel("LayerNormalization", operands, outputs=outputs, axis=axis, epsilon=1e-3)
    expect_close(model)


def test_layer_norm_with_a_scale_that_broadcasts() -> None:
    x, scale, bias = _reals(1, *_DIMS), _reals(2, 4), _reals(3, 2, 1, 1)
    model = NodeModel("LayerNormalization", [x, scale, bias], axis=1)
    wide = x.astype(np.float64)
    mean, variance = wide.mean((1, 2), keepdims=True), wide.var((1, 2), keepdims=True)
    wanted = (wide - mean) / np.sqrt(variance + 1e-5) * scale + bias
    np.testing.assert_allclose(model.by_module()[0], wanted, rtol=1e-5, atol=1e-5)


@given(_SEEDS, st.integers(-3, 2))
def test_rms_norm(seed: int, axis: int) -> None:
    operands: list[Array | None] = [_reals(seed, *_DIMS), _reals(seed + 1, *_DIMS[axis:])]
    model = NodeModel("RMSNormalization", operands, opset=23, axis=axis, epsilon=1e-3)
    expect_close(model)
    assert opcodes(model) == ["RmsNorm"]


@given(_SEEDS)
def test_simplified_layer_norm(seed: int) -> None:
    operands: list[Array | None] = [_reals(seed, *_DIMS), _reals(seed + 1, 4)]
    model = NodeModel(
        "SimplifiedLayerNormalization", operands, outputs=("y", "deviation"), types=[1, 1],
        axis=-1, epsilon=1e-3,
    )  # fmt: skip
    expect_close(model)


def test_rms_norm_of_another_type_than_its_scale() -> None:
    x, scale = _reals(1, 3, 8, dtype=np.float16), _reals(2, 8)
    model = NodeModel("RMSNormalization", [x, scale], opset=23)
    (found,) = model.by_module()
    wide = x.astype(np.float64)
    level = (wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-5)).astype(np.float16)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, level.astype(np.float64) * scale, rtol=2e-3, atol=1e-4)


@given(_SEEDS, st.sampled_from([18, 21]), st.sampled_from([1, 2, 3, 6]))
def test_group_norm(seed: int, opset: int, groups: int) -> None:
    count = groups if opset == 18 else 6
    operands: list[Array | None] = [
        _reals(seed, 2, 6, 3, 2), _reals(seed + 1, count), _reals(seed + 2, count),
    ]  # fmt: skip
    model = NodeModel("GroupNormalization", operands, opset=opset, num_groups=groups)
    expect_close(model, rtol=1e-4, atol=1e-4)


@given(_SEEDS, st.sampled_from([9, 13]), st.sampled_from([None, [0, 1], [2], [0, 2, 3]]))
def test_mean_variance_norm(seed: int, opset: int, axes: list[int] | None) -> None:
    given: dict[str, Any] = {} if axes is None else {"axes": axes}
    operands: list[Array | None] = [_reals(seed, 2, 3, 4, 5)]
    expect_close(NodeModel("MeanVarianceNormalization", operands, opset=opset, **given), atol=1e-4)


def test_mean_variance_norm_of_equal_elements_is_0() -> None:
    x: Array = np.full((2, 3, 2, 2), 0.5, np.float16)
    model = NodeModel("MeanVarianceNormalization", [x], opset=13, types=[10])
    np.testing.assert_array_equal(model.by_module()[0], np.zeros_like(x))


@given(_SEEDS, st.sampled_from([7, 11, 13]), st.integers(0, 2))
def test_hardmax(seed: int, opset: int, axis: int) -> None:
    x = rng(seed).integers(0, 3, _DIMS).astype(np.float32)
    expect_same(NodeModel("Hardmax", [x], opset=opset, axis=axis))


_X: Array = np.zeros((2, 6, 4), np.float32)


@pytest.mark.parametrize(
    ("op", "operands", "attributes", "wanted"),
    [
        ("LayerNormalization", [_X, np.ones(3, np.float32)], {}, "do not broadcast"),
        ("LayerNormalization", [_X, np.ones(4, np.float32)], {"axis": 7}, "`axis` is 7"),
        ("GroupNormalization", [_X, np.ones(6, np.float32), np.ones(6, np.float32)],
         {"num_groups": 4}, "`num_groups` is 4"),
        ("GroupNormalization", [_X, np.ones(3, np.float32), np.ones(6, np.float32)],
         {"num_groups": 3}, "expected [6]"),
        ("MeanVarianceNormalization", [_X], {}, "`axes` is [0, 2, 3]"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told(
    op: str, operands: list[Array | None], attributes: dict[str, Any], wanted: str
) -> None:
    assert wanted in NodeModel(op, operands, opset=21, **attributes).refused()


def _batch(seed: int, dims: tuple[int, ...], *, each: tuple[int, ...]) -> list[Array | None]:
    scale, bias, mean = (_reals(seed + i, *each) for i in range(3))
    variance = np.abs(_reals(seed + 3, *each)) + np.float32(0.5)
    return [_reals(seed + 4, *dims), scale, bias, mean, variance]


@given(_SEEDS, st.sampled_from([(4, 3), (2, 3, 4), (2, 3, 4, 5)]), st.sampled_from([7, 9, 14, 15]))
def test_batch_norm(seed: int, dims: tuple[int, ...], opset: int) -> None:
    expect_close(NodeModel("BatchNormalization", _batch(seed, dims, each=dims[1:2]), opset=opset))


@given(_SEEDS, st.sampled_from([(4, 3), (2, 3, 4), (2, 3, 4, 5)]), st.sampled_from([0.9, 0.25]))
def test_batch_norm_in_training(seed: int, dims: tuple[int, ...], momentum: float) -> None:
    operands = _batch(seed, dims, each=dims[1:2])
    x, scale, bias, mean, variance = (o.astype(np.float64) for o in operands if o is not None)
    model = NodeModel("BatchNormalization", operands, opset=15, outputs=("y", "mean", "variance"),
                      training_mode=1, momentum=momentum, epsilon=1e-3)  # fmt: skip
    axes = (0, *range(2, len(dims)))
    line = (-1, *[1] * (len(dims) - 2))
    own, wide = x.mean(axes), x.var(axes)
    root = np.sqrt(wide.reshape(line) + 1e-3)
    wanted = [
        (x - own.reshape(line)) / root * scale.reshape(line) + bias.reshape(line),
        mean * momentum + own * (1 - momentum),
        variance * momentum + wide * (1 - momentum),
    ]
    for found, expected in zip(model.by_module(), wanted, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@given(_SEEDS, st.sampled_from([(2, 3), (2, 3, 4)]))
def test_batch_norm_of_each_element(seed: int, dims: tuple[int, ...]) -> None:
    operands = _batch(seed, dims, each=dims[1:])
    x, scale, bias, mean, variance = (o.astype(np.float64) for o in operands if o is not None)
    model = NodeModel("BatchNormalization", operands, opset=7, spatial=0)
    wanted = (x - mean) / np.sqrt(variance + 1e-5) * scale + bias
    np.testing.assert_allclose(model.by_module()[0], wanted, rtol=1e-4, atol=1e-4)


def test_batch_norm_before_opset_7_says_what_it_is_for() -> None:
    operands = _batch(1, (2, 3, 4), each=(3,))
    told = NodeModel("BatchNormalization", operands, opset=6).refused()
    assert "`is_test` is 0: before opset 7 that means training" in told

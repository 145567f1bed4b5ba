"""Models as onnxruntime writes them: optimised, quantised, and both, against onnxruntime."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)

from nacre.base.diagnostics import InputError
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.onnx.importer import from_onnx
from tests.byte_products import skip_where_they_saturate
from tests.core.onnx.small_models import convolutional, inputs_of, recurrent, transformer

Levels = ort.GraphOptimizationLevel
MODELS: dict[str, Callable[[int], Any]] = {
    "convolutional": convolutional, "transformer": transformer, "recurrent": recurrent,
}  # fmt: skip


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)  # of onnxruntime's tools
    yield
    logging.disable(logging.NOTSET)


def _session(path: Path, level: Any, out: Path | None = None) -> ort.InferenceSession:  # noqa: ANN401
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = level
    if out is not None:
        options.optimized_model_filepath = str(out)
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _optimised(path: Path, level: Any = Levels.ORT_ENABLE_EXTENDED) -> Path:  # noqa: ANN401
    out = path.with_suffix(".optimised.onnx")
    _session(path, level, out)
    return out


def _saved(name: str, opset: int, folder: Path) -> Path:
    path = folder / f"{name}.onnx"
    onnx.save(MODELS[name](opset), path)
    return path


def _operations(path: Path) -> set[str]:
    return {node.op_type for node in onnx.load(path).graph.node}


def _expect_same(path: Path, tolerance: float = 1e-5) -> None:
    feeds = inputs_of(onnx.load(path), 7)
    (wanted,) = _session(path, Levels.ORT_DISABLE_ALL).run(None, feeds)
    (found,) = evaluate(from_onnx(path), feeds)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(found, wanted, tolerance, tolerance)


def _expect_near(path: Path) -> None:
    """As `_expect_same`, but for steps of 8 bits here and there.

    onnxruntime computes QLinearSoftmax by a table of integers, and means of QLinearAveragePool in
    f32; what lies between two steps falls to one or the other, and on through the network.
    """
    feeds = inputs_of(onnx.load(path), 7)
    (wanted,) = _session(path, Levels.ORT_DISABLE_ALL).run(None, feeds)
    (found,) = evaluate(from_onnx(path), feeds)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    apart, wide = np.abs(found - wanted), np.ptp(wanted)
    assert apart.mean() <= wide / 64
    assert apart.max() <= wide * 8 / 256


FUSED = {"convolutional": "FusedConv", "transformer": "SkipLayerNormalization"}


@pytest.mark.parametrize("opset", [11, 14, 17])
@pytest.mark.parametrize("name", FUSED)
def test_optimised(name: str, opset: int, tmp_path: Path) -> None:
    path = _saved(name, opset, tmp_path)
    _expect_same(path)
    fused = _optimised(path)
    assert FUSED[name] in _operations(fused)
    _expect_same(fused)


class _Calibration(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self, model: Any) -> None:  # noqa: ANN401
        self._feeds = iter([inputs_of(model, seed) for seed in range(4)])

    def get_next(self) -> dict[str, Any] | None:
        return next(self._feeds, None)


_MADE_BY_QUANTISING = {
    ("convolutional", QuantFormat.QOperator): {"QLinearConv", "QLinearAdd", "QGemm",
                                               "QLinearConcat", "QLinearGlobalAveragePool"},
    ("convolutional", QuantFormat.QDQ): {"QuantizeLinear", "DequantizeLinear"},
    ("transformer", QuantFormat.QOperator): {"QLinearMatMul", "QLinearAdd", "QLinearSoftmax"},
    ("transformer", QuantFormat.QDQ): {"QuantizeLinear", "DequantizeLinear"},
}  # fmt: skip


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("activations", "weights", "by_channel"),
    [
        (QuantType.QUInt8, QuantType.QInt8, False),
        (QuantType.QInt8, QuantType.QInt8, True),
        (QuantType.QUInt8, QuantType.QUInt8, False),
    ],
)
@pytest.mark.parametrize(("name", "form"), _MADE_BY_QUANTISING)
def test_quantised(
    name: str, form: QuantFormat, activations: Any, weights: Any, by_channel: bool, tmp_path: Path  # noqa: ANN401
) -> None:  # fmt: skip
    if weights == QuantType.QInt8:
        skip_where_they_saturate()
    path, out = _saved(name, 17, tmp_path), tmp_path / "q.onnx"
    quantize_static(
        str(path), str(out), _Calibration(MODELS[name](17)), quant_format=form,
        activation_type=activations, weight_type=weights, per_channel=by_channel,
    )  # fmt: skip
    assert _operations(out) >= _MADE_BY_QUANTISING[name, form]
    _expect_same(out)
    _expect_near(_optimised(out))


_MADE_BY_DYNAMIC = {
    "convolutional": {"ConvInteger", "MatMulInteger", "DynamicQuantizeLinear"},
    "transformer": {"MatMulInteger", "DynamicQuantizeLinear"},
    "recurrent": {"DynamicQuantizeLSTM", "MatMulInteger"},
}


@pytest.mark.parametrize("weights", [QuantType.QInt8, QuantType.QUInt8])
@pytest.mark.parametrize("name", _MADE_BY_DYNAMIC)
def test_quantised_by_ranges(name: str, weights: Any, tmp_path: Path) -> None:  # noqa: ANN401
    skip_where_they_saturate()
    path, out = _saved(name, 17, tmp_path), tmp_path / "q.onnx"
    quantize_dynamic(str(path), str(out), weight_type=weights)
    assert _operations(out) >= _MADE_BY_DYNAMIC[name]
    _expect_same(out)
    fused = _optimised(out)
    assert "DynamicQuantizeMatMul" in _operations(fused)
    _expect_same(fused)


def test_a_layout_for_one_machine_is_refused_with_the_level_to_use(tmp_path: Path) -> None:
    fused = _optimised(_saved("convolutional", 17, tmp_path), Levels.ORT_ENABLE_ALL)
    if not any(node.domain == "com.microsoft.nchwc" for node in onnx.load(fused).graph.node):
        pytest.skip("onnxruntime has no such layout on this machine")
    with pytest.raises(InputError, match="layout that onnxruntime made for one machine") as told:
        from_onnx(fused)
    assert "ORT_ENABLE_EXTENDED" in (told.value.diagnostics[0].help or "")

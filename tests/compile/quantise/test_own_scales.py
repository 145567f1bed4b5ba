"""Models that come quantised, against onnxruntime's integers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nacre.compile.legalise.layout import layout
from nacre.compile.legalise.stage import legalise
from nacre.compile.quantise.prequantised.scales import float_model
from nacre.compile.quantise.quantiser import Quantised, quantise
from nacre.core.builder import Builder
from nacre.core.canonical import canonicalise
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module
from nacre.core.onnx.importer import from_onnx
from tests.compile.quantise.networks import mobile, numbers, samples, sqnr, stored_run

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
quantization = pytest.importorskip("onnxruntime.quantization")

SHAPE = (1, 3, 12, 12)


def convolutions(path: Path) -> None:
    """Convolutions with what usually lies between them."""
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    weights = {
        "w0": numbers(1, 8, 3, 3, 3, spread=0.2), "b0": numbers(2, 8, spread=0.1),
        "w1": numbers(3, 8, 1, 3, 3, spread=0.4), "b1": numbers(4, 8, spread=0.1),
        "w2": numbers(5, 8, 8, 1, 1, spread=0.4), "b2": numbers(6, 8, spread=0.1),
        "w3": numbers(7, 5, 16, spread=0.3), "b3": numbers(8, 5, spread=0.1),
    }  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "w0", "b0"], ["c0"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c0"], ["r0"]),
        helper.make_node("Conv", ["r0", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1], group=8),
        helper.make_node("Sigmoid", ["c1"], ["s1"]),
        helper.make_node("Mul", ["c1", "s1"], ["m1"]),
        helper.make_node("Conv", ["m1", "w2", "b2"], ["c2"]),
        helper.make_node("Add", ["c2", "r0"], ["a2"]),
        helper.make_node("MaxPool", ["a2"], ["p2"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Concat", ["p2", "p2"], ["k2"], axis=1),
        helper.make_node("GlobalAveragePool", ["k2"], ["g2"]),
        helper.make_node("Flatten", ["g2"], ["f2"]),
        helper.make_node("Gemm", ["f2", "w3", "b3"], ["y"], transB=1),
    ]
    graph = helper.make_graph(
        nodes, "convolutions",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (1, 5))],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )  # fmt: skip
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)


def images(seed: int, count: int) -> list[dict[str, Any]]:
    return [{"x": numbers(seed + i, *SHAPE)} for i in range(count)]


class Reader(quantization.CalibrationDataReader):  # type: ignore[misc, name-defined]
    """Hands out samples."""

    def __init__(self) -> None:
        self._left = iter(images(10, 8))

    def get_next(self) -> dict[str, Any] | None:
        return next(self._left, None)


@pytest.fixture(params=["QDQ", "QOperator"])
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def quantised_by_others(folder: Path, form: str, kind: str) -> Path:
    plain, made = folder / "plain.onnx", folder / "quantised.onnx"
    convolutions(plain)
    type_ = quantization.QuantType[kind]
    weights = quantization.QuantType.QInt8
    quantization.quantize_static(
        plain, made, Reader(), quant_format=quantization.QuantFormat[form],
        activation_type=type_, weight_type=weights, per_channel=True,
    )  # fmt: skip
    return made


def taken_over(module: Module) -> Quantised:
    plain = float_model(module)
    assert plain.imported
    legal = layout(legalise(plain.module, "f32"))
    return quantise(legal, None, source=plain.module, imported=plain.imported)


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore")  # of onnxruntime's tools
@pytest.mark.parametrize("kind", ["QInt8", "QUInt8"])
def test_scales_are_taken_as_they_are(tmp_path: Path, form: str, kind: str) -> None:
    path = quantised_by_others(tmp_path, form, kind)
    module = canonicalise(from_onnx(path))
    made = taken_over(module)
    found = {op.opcode for op in made.legal.module.operations}
    assert {"QConv", "QLinear"} <= found
    assert not any(op.type.dtype == "u8" for op in made.legal.module.operations)
    scales = {c for op in module.operations if op.opcode == "Quantize"
              for c in _numbers(module, op.operands[1])}  # fmt: skip
    own = {op.attributes["x_scale"] for op in made.legal.module.operations if op.opcode == "QConv"}
    if scales:  # a model of fused operations has most of them in attributes
        assert own & {float(s) for s in scales}
    session = ort.InferenceSession(path)
    plain = ort.InferenceSession(tmp_path / "plain.onnx")
    theirs, ours, floats = [], [], []
    for sample in images(500, 6):
        (expected,) = session.run(None, sample)
        (result,) = stored_run(made, sample)
        theirs.append(expected)
        ours.append(result)
        floats.append(plain.run(None, sample)[0])
    assert sqnr(theirs, ours) > 30
    assert sqnr(floats, ours) > sqnr(floats, theirs) - 3


def _numbers(module: Module, value: int) -> list[float]:
    data = module.by_id[value].attributes.get("data")
    return [] if data is None else np.ravel(np.asarray(data.array)).tolist()


@pytest.mark.filterwarnings("ignore")
def test_calibration_only_measures_a_model_with_scales(tmp_path: Path, form: str) -> None:
    module = canonicalise(from_onnx(quantised_by_others(tmp_path, form, "QInt8")))
    plain = float_model(module)
    legal = layout(legalise(plain.module, "f32"))
    without = quantise(legal, None, source=plain.module, imported=plain.imported)
    measured = quantise(legal, images(10, 3), source=plain.module, imported=plain.imported)
    assert str(without) == str(measured)
    assert (without.report.samples, measured.report.samples) == (0, 3)
    assert all(sqnr is None or sqnr > 20 for sqnr in measured.report.outputs.values())


def test_a_float_model_is_returned_as_it_is() -> None:
    module = mobile()
    plain = float_model(module)
    assert plain.module is module
    assert not plain.imported


def test_saturation_survives_as_bounds() -> None:
    """Writers drop a Relu before integers that begin at 0: the bounds are all that is left."""
    builder = Builder()
    x = builder.input("x", "f32", (64,))
    scale, zero = builder.constant(np.float32(0.02)), builder.constant(np.int8(-128), "i8")
    stored = builder.add("Quantize", x, scale, zero, to="i8")
    module = builder.module(builder.add("Dequantize", stored, scale, zero))
    plain = float_model(module)
    array = numbers(1, 64, spread=4.0)
    (floats,) = evaluate(plain.module, {"x": array})
    (quantised,) = evaluate(module, {"x": array})
    assert floats.min() == 0.0
    assert np.abs(floats - quantised).max() <= 0.0101


def test_parts_without_scales_are_islands() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (4, 8))
    scale, zero = builder.constant(np.float32(0.03)), builder.constant(np.int8(2), "i8")

    def fake(value: int) -> int:
        stored = builder.add("Quantize", value, scale, zero, to="i8")
        return builder.add("Dequantize", stored, scale, zero)

    y = builder.add("Linear", fake(x), builder.constant(numbers(1, 6, 8, spread=0.3)))
    y = builder.add("Linear", fake(y), builder.constant(numbers(2, 5, 6, spread=0.3)))
    y = builder.add("Unary", y, op="Tanh")
    module = builder.module(y)
    made = taken_over(module)
    kinds = {op.opcode: op.type.dtype for op in made.legal.module.operations}
    assert kinds["QLinear"] == "i8"
    assert kinds["Linear"] == "f16"
    assert kinds["Unary"] == "f16"
    sample = samples(module, 1)[0]
    assert sqnr(evaluate(module, sample)[0], stored_run(made, sample)[0]) > 30


def _stored_input(builder: Builder, shape: tuple[int, ...]) -> int:
    x = builder.input("x", "f32", shape)
    scale, zero = builder.constant(np.float32(0.05)), builder.constant(np.int8(0), "i8")
    stored = builder.add("Quantize", x, scale, zero, to="i8")
    return builder.add("Dequantize", stored, scale, zero)


@pytest.mark.parametrize("has_zero", [True, False])
@pytest.mark.parametrize(("shape", "axis"), [((2, 5), 0), ((4, 6), 1), ((6, 6), 0), ((6, 6), 1)])
def test_stored_constants_are_the_reals_that_they_stand_for(
    shape: tuple[int, int], axis: int, has_zero: bool
) -> None:
    """By channel along either axis, also where both are of one length."""
    rng = np.random.default_rng(axis)
    stored = rng.integers(-128, 128, shape).astype(np.int8)
    scales = rng.uniform(0.01, 0.2, shape[axis]).astype(np.float32)
    zeros = rng.integers(-9, 9, shape[axis]).astype(np.int8) if has_zero else None
    builder = Builder()
    x = _stored_input(builder, (1, shape[0]))
    operands = [builder.constant(stored, "i8"), builder.constant(scales)]
    operands += [builder.constant(zeros, "i8")] if zeros is not None else []
    weights = builder.add("Dequantize", *operands, axis=axis)
    module = builder.module(builder.add("MatMul", x, weights))
    wide = [1, 1]
    wide[axis] = shape[axis]
    offsets = (0 if zeros is None else zeros.astype(np.int64)) * np.ones(shape[axis], np.int64)
    reals = (stored.astype(np.int64) - offsets.reshape(wide)) * scales.reshape(wide)
    plain = float_model(module).module
    found = [op.attributes["data"].array for op in plain.operations if op.opcode == "ConstTensor"]
    assert any(np.array_equal(array, reals.astype(np.float32)) for array in found)
    assert not any(op.opcode == "Dequantize" for op in plain.operations)


def test_one_scale_of_many_constants_is_for_all() -> None:
    stored = np.arange(-6, 6, dtype=np.int8).reshape(3, 4)
    builder = Builder()
    x = _stored_input(builder, (2, 3))
    scale, zero = builder.constant(np.float32(0.25)), builder.constant(np.int8(3), "i8")
    weights = builder.add("Dequantize", builder.constant(stored, "i8"), scale, zero)
    module = builder.module(builder.add("MatMul", x, weights))
    array = np.round(numbers(1, 2, 3), 1)
    (found,) = evaluate(float_model(module).module, {"x": array})
    assert np.allclose(found, array @ ((stored.astype(np.float32) - 3) * 0.25), rtol=1e-6)

"""AIMET's encodings beside a float model, against onnxruntime on the same model with QDQ nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nacre
from nacre.base.diagnostics import InputError
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.onnx.importer import from_onnx
from tests.compile.models import Array

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
SHAPE = (1, 3, 8, 8)
OPS = {4: onnx.TensorProto.INT4, 8: onnx.TensorProto.UINT8, 16: onnx.TensorProto.UINT16}


def numbers(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


WEIGHTS = {"w": numbers(1, 6, 3, 3, 3) / 5, "b": numbers(2, 6), "m": numbers(3, 4, 6) / 3}
# Of activations: bits, scale, offset.
TENSORS = {"x": (0.03, -120), "c": (0.04, -110), "r": (0.03, 0), "g": (0.02, 0), "y": (0.02, -130)}


def model(path: Path, bits: int | None, weight_bits: int) -> Path:
    """The float model; with bits the same with pairs of nodes at its tensors, as ONNX has them."""
    helper, nodes, inits = onnx.helper, [], []
    array = onnx.numpy_helper.from_array

    def stored(name: str) -> str:
        if bits is None or name not in TENSORS:
            return name
        scale, offset = TENSORS[name]
        factor = 2 ** (bits - 8)
        inits.append(array(np.float32(scale / factor), f"{name}_s"))
        inits.append(helper.make_tensor(f"{name}_z", OPS[bits], (), [-offset * factor]))
        ends = [f"{name}_s", f"{name}_z"]
        nodes.append(helper.make_node("QuantizeLinear", [name, *ends], [f"{name}_q"]))
        nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", *ends], [f"{name}_d"]))
        return f"{name}_d"

    def weight(name: str) -> str:
        if bits is None or name == "b":
            inits.append(array(WEIGHTS[name], name))
            return name
        scales, integers = rounded(name, weight_bits)
        kind = onnx.TensorProto.INT4 if weight_bits == 4 else onnx.TensorProto.INT8
        inits.append(
            helper.make_tensor(f"{name}_q", kind, integers.shape, integers.ravel().tolist())
        )
        inits.append(array(scales, f"{name}_s"))
        nodes.append(
            helper.make_node("DequantizeLinear", [f"{name}_q", f"{name}_s"], [name], axis=0)
        )
        return name

    x = stored("x")
    nodes.append(helper.make_node("Conv", [x, weight("w"), weight("b")], ["c"], pads=[1] * 4))
    nodes.append(helper.make_node("Relu", [stored("c")], ["r"]))
    nodes.append(helper.make_node("GlobalAveragePool", [stored("r")], ["p"]))
    nodes.append(helper.make_node("Flatten", ["p"], ["g"]))
    nodes.append(helper.make_node("Gemm", [stored("g"), weight("m")], ["y"], transB=1))
    out = stored("y")
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", 1, SHAPE)],
        [helper.make_tensor_value_info(out, 1, (1, 4))], inits,
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(made, path)
    return path


def rounded(name: str, bits: int) -> tuple[Array, Array]:
    """Scales by channel and integers, symmetric."""
    array, most = WEIGHTS[name], 2 ** (bits - 1) - 1
    scales = (np.abs(array).reshape(len(array), -1).max(axis=1) / most).astype(np.float32)
    shape = (-1,) + (1,) * (array.ndim - 1)
    return scales, np.rint(array / scales.reshape(shape)).astype(int)


def encodings(layout: str, bits: int, weight_bits: int) -> dict[str, Any]:
    factor = 2 ** (bits - 8)
    activations = {n: ([s / factor], [o * factor]) for n, (s, o) in TENSORS.items()}
    half = -(2 ** (weight_bits - 1))
    parameters = {
        n: (s.tolist(), [half] * len(s)) for n in "wm" for s in [rounded(n, weight_bits)[0]]
    }
    if layout == "0.6.1":

        def rows(found: Any, width: int) -> Any:  # noqa: ANN401
            return {
                name: [
                    {
                        "bitwidth": width,
                        "dtype": "int",
                        "is_symmetric": "False",
                        "scale": s,
                        "offset": o,
                    }
                    for s, o in zip(scales, offsets, strict=True)
                ]
                for name, (scales, offsets) in found.items()
            }
    else:

        def rows(found: Any, width: int) -> Any:  # noqa: ANN401
            return [
                {"name": name, "bw": width, "dtype": "INT", "scale": scales, "offset": offsets,
                 "enc_type": "PER_CHANNEL" if len(scales) > 1 else "PER_TENSOR"}
                for name, (scales, offsets) in found.items()
            ]  # fmt: skip

    return {
        "version": layout,
        "activation_encodings": rows(activations, bits),
        "param_encodings": rows(parameters, weight_bits),
    }


@pytest.mark.parametrize("layout", ["0.6.1", "1.0.0"])
@pytest.mark.parametrize(("bits", "weight_bits"), [(8, 8), (8, 4), (16, 8)])
def test_a_model_with_encodings_is_the_one_with_nodes(
    tmp_path: Path, layout: str, bits: int, weight_bits: int
) -> None:
    floats = model(tmp_path / "f.onnx", None, weight_bits)
    wanted = model(tmp_path / "q.onnx", bits, weight_bits)
    (tmp_path / "e.json").write_text(json.dumps(encodings(layout, bits, weight_bits)))
    module = from_onnx(floats, encodings=tmp_path / "e.json")
    assert module.output_names == ("y",)
    session = ort.InferenceSession(str(wanted), providers=["CPUExecutionProvider"])
    x = numbers(9, *SHAPE)
    expected = session.run(None, {"x": x})[0]
    found = evaluate(module, {"x": x})[0]
    # An integer next to the middle of a step may fall on either side.
    step = TENSORS["y"][0] / 2 ** (bits - 8)
    assert np.abs(found - expected).max() <= step * 1.01
    bundle = nacre.compile(module, "npm4k", "i8")  # it brings its scales
    assert any(op.opcode == "QConv" for op in bundle.legal.operations)
    on_device = bundle.run({"x": x})["y"]
    assert np.abs(on_device - expected).max() <= TENSORS["y"][0] * (1.01 if bits == 8 else 3)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"activation_encodings": {"xx": {"bitwidth": 8, "scale": 1, "offset": 0}}}, "no tensor"),
        ({"param_encodings": {"v": [{"bitwidth": 8, "scale": 1, "offset": 0}]}}, "no parameter"),
        ({"activation_encodings": {"x": [{"bitwidth": 7, "scale": 1, "offset": 0}]}}, "7 bits"),
        ({"activation_encodings": {"x": [{"bitwidth": 8, "scale": 0, "offset": 0}]}}, "scale"),
        ({"activation_encodings": {"x": [{"bitwidth": 8, "scale": 1, "offset": 3}]}}, "offset"),
        ({"activation_encodings": {"x": [{"bitwidth": 8, "scale": 1}]}}, "offset"),
        ({"activation_encodings": {"x": []}}, "no encoding"),
        ({"activation_encodings": 3}, "neither"),
        ({"activation_encodings": [{"bw": 8}]}, "without a name"),
        ({"param_encodings": {"w": [{"bitwidth": 8, "scale": 1, "offset": 0}] * 5}}, "5 scales"),
        (
            {"param_encodings": [{"name": "w", "bw": 8, "enc_type": "PER_BLOCK", "scale": [1],
                                  "offset": [0]}]},
            "PER_BLOCK",
        ),
        ({}, "no encoding"),
    ],
)  # fmt: skip
def test_encodings_that_are_refused(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    floats = model(tmp_path / "f.onnx", None, 8)
    (tmp_path / "e.json").write_text(json.dumps({"version": "0.6.1", **change}))
    with pytest.raises(InputError, match=told) as refused:
        from_onnx(floats, encodings=tmp_path / "e.json")
    assert [d.code for d in refused.value.diagnostics] == ["ONX11"]


@pytest.mark.parametrize(
    "text", ["", "[1]", "{", "[" * 5000, '{"activation_encodings": NaN}', "\0"]
)
def test_files_that_are_no_encodings(tmp_path: Path, text: str) -> None:
    floats = model(tmp_path / "f.onnx", None, 8)
    (tmp_path / "e.json").write_text(text)
    with pytest.raises(InputError) as refused:
        from_onnx(floats, encodings=tmp_path / "e.json")
    assert [d.code for d in refused.value.diagnostics] == ["ONX11"]

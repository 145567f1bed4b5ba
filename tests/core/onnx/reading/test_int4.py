"""INT4 and UINT4 of ONNX: initialisers however they are stored, and inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from nacre import core  # noqa: E402
from nacre.core.values import Array  # noqa: E402

TYPES = {"i4": TensorProto.INT4, "u4": TensorProto.UINT4}
DTYPES = {"i4": ml_dtypes.int4, "u4": ml_dtypes.uint4}
SHAPES = [(3, 5), (1,), (7,), (2, 4), (), (3, 1001)]  # the last is read apart from the message


def drawn(name: str, shape: tuple[int, ...], seed: int) -> Array:
    low = -8 if name == "i4" else 0
    return np.random.default_rng(seed).integers(low, low + 16, shape)


def packed(values: Array) -> bytes:
    flat = [int(value) & 15 for value in values.reshape(-1)] + [0] * (values.size % 2)
    return bytes(low | high << 4 for low, high in zip(flat[::2], flat[1::2], strict=True))


def tensor(name: str, values: Array, how: str, folder: Path) -> Any:  # noqa: ANN401
    if how in ("int32_data", "constant"):
        return helper.make_tensor("w", TYPES[name], values.shape, values.reshape(-1))
    made = TensorProto(name="w", data_type=TYPES[name], dims=values.shape)
    if how == "raw":
        made.raw_data = packed(values)
        return made
    (folder / "w.bin").write_bytes(b"..." + packed(values))
    made.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "w.bin"), ("offset", "3"), ("length", len(packed(values)))):
        made.external_data.add(key=key, value=str(value))
    return made


def model(name: str, weights: Any, shape: tuple[int, ...], how: str) -> Any:  # noqa: ANN401
    nodes = [
        helper.make_node("Cast", ["w"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["x"], ["reals"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["reals", "wide"], ["y"]),
    ]
    if how == "constant":
        nodes.insert(0, helper.make_node("Constant", [], ["w"], value=weights))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TYPES[name], shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [] if how == "constant" else [weights],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("how", ["int32_data", "raw", "external", "constant"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", TYPES)
def test_an_initialiser_has_the_values_that_onnx_unpacks(
    tmp_path: Path, name: str, shape: tuple[int, ...], how: str
) -> None:
    values, x = drawn(name, shape, 1), drawn(name, shape, 2)
    weights = tensor(name, values, how, tmp_path)
    unpacked = numpy_helper.to_array(weights, base_dir=str(tmp_path)).astype(np.int64)
    np.testing.assert_array_equal(unpacked, values)
    onnx.save(model(name, weights, shape, how), tmp_path / "m.onnx")
    module = core.from_onnx(tmp_path / "m.onnx")
    assert module.input_types["x"].dtype == name
    (found,) = core.evaluate(module, {"x": x.astype(DTYPES[name])})
    np.testing.assert_array_equal(found, unpacked * x)


@pytest.mark.parametrize("name", TYPES)
def test_weights_of_4_bits_with_scales_are_dequantised_by_blocks(tmp_path: Path, name: str) -> None:
    """As tools that quantise language models write them: blocks of 4 along the first axis."""
    values = drawn(name, (8, 5), 1)
    scales = np.random.default_rng(4).random((2, 5), np.float32) + 0.5
    zeros = drawn(name, (2, 5), 5)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["wide"], axis=0, block_size=4),
        helper.make_node("MatMul", ["x", "wide"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (3, 8))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (3, 5))],
        [
            helper.make_tensor("w", TYPES[name], (8, 5), values.reshape(-1)),
            numpy_helper.from_array(scales, "s"),
            helper.make_tensor("z", TYPES[name], (2, 5), zeros.reshape(-1)),
        ],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(made, tmp_path / "m.onnx")
    x = np.random.default_rng(6).normal(size=(3, 8)).astype(np.float32)
    (found,) = core.evaluate(core.from_onnx(tmp_path / "m.onnx"), {"x": x})
    naive = np.zeros((3, 5))
    for row in range(3):
        for column in range(5):
            for k in range(8):
                real = (values[k, column] - zeros[k // 4, column]) * scales[k // 4, column]
                naive[row, column] += x[row, k] * real
    np.testing.assert_allclose(found, naive, rtol=1e-4, atol=1e-4)

"""What quantised models bring, from the file to the plan: held to onnxruntime's own integers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nacre
from nacre.base.elements import GRAPH_TYPES
from nacre.compile.bundle.validation import sqnr
from nacre.compile.options import Calibration, Precision
from tests.byte_products import skip_where_they_saturate
from tests.compile.legalise.test_lowering_rows import computed, tasks

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

pytestmark = pytest.mark.sampled(2)  # together they take long

Array = np.ndarray[Any, Any]
Shapes = Mapping[str, tuple[str, tuple[int, ...]]]
RANDOM = np.random.default_rng(5)
SCALE, ZERO = np.float32(0.03), np.uint8(120)
TYPES = {"f32": "FLOAT", "f16": "FLOAT16", "u8": "UINT8", "i8": "INT8", "i32": "INT32",
         "i64": "INT64"}  # fmt: skip


def node(opcode: str, inputs: str, outputs: str, **given: Any) -> Any:  # noqa: ANN401
    return onnx.helper.make_node(opcode, inputs.split(" "), outputs.split(), **given)


def pair(source: str, result: str, scale: str, zero: str) -> list[Any]:
    """Rounded to integers, and reals again."""
    return [
        node("QuantizeLinear", f"{source} {scale} {zero}", f"{result}_stored"),
        node("DequantizeLinear", f"{result}_stored {scale} {zero}", result),
    ]


def saved(
    path: Path, nodes: list[Any], inputs: Shapes, outputs: Mapping[str, str], known: dict[str, Any]
) -> Path:
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes, "graph",
        [info(n, onnx.TensorProto.DataType.Value(TYPES[t]), s) for n, (t, s) in inputs.items()],
        [info(n, onnx.TensorProto.DataType.Value(TYPES[t]), None) for n, t in outputs.items()],
        [onnx.numpy_helper.from_array(np.asarray(a), n) for n, a in known.items()],
    )  # fmt: skip
    opset = [onnx.helper.make_opsetid("", 21)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=10), path)
    return path


def feeds(inputs: Shapes) -> dict[str, Array]:
    made = {}
    for name, (dtype, shape) in inputs.items():
        numpy = GRAPH_TYPES[dtype].dtype
        if dtype.startswith("f"):
            made[name] = RANDOM.standard_normal(shape).astype(numpy)
        else:
            low, high = {"u8": (0, 256), "i8": (-128, 128), "i64": (0, 20)}[dtype]
            made[name] = RANDOM.integers(low, high, shape).astype(numpy)
    return made


def held(
    path: Path,
    inputs: Shapes,
    precision: Precision = "i8",
    calibration: Calibration | None = None,
) -> tuple[nacre.Bundle, list[float]]:
    """A clean bundle with the values of its legalised module; ratios against onnxruntime."""
    bundle = nacre.compile(path, "npm4k", precision, calibration=calibration)
    found = nacre.nem.check(bundle.program, strict=True)
    assert [d for d in found if d.severity != "info"] == []
    given = feeds(inputs)
    assert bundle.validate(given).first_difference is None
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    wanted = ort.InferenceSession(path, options).run(None, given)
    ours = bundle.run(given).values()
    for a, b in zip(ours, wanted, strict=True):
        assert a.dtype == b.dtype
    return bundle, [sqnr(a, b) for a, b in zip(ours, wanted, strict=True)]


def elems(bundle: nacre.Bundle, opcode: str) -> set[str]:
    """The element types of the first operand of an operation's tasks."""
    return {
        str(t.operands[0].region.elem)
        for t in tasks(bundle)
        if t.op == opcode and t.operands[0].region is not None
    }


KNOWN = {"s": SCALE, "z": ZERO, "bs": np.float32(0.02), "bz": np.int8(3), "ys": np.float32(0.15),
         "yz": np.uint8(128)}  # fmt: skip


@pytest.mark.parametrize("shapes", [((4, 8), (8, 5)), ((2, 3, 4, 8), (2, 3, 8, 5))])
def test_a_product_of_two_computed_matrices_is_one_of_bytes(
    tmp_path: Path, shapes: tuple[tuple[int, ...], ...]
) -> None:
    skip_where_they_saturate()
    inputs: Shapes = {"a": ("u8", shapes[0]), "b": ("i8", shapes[1])}
    nodes = [node("QLinearMatMul", "a s z b bs bz ys yz", "y")]
    path = saved(tmp_path / "m.onnx", nodes, inputs, {"y": "u8"}, KNOWN)
    bundle, ratios = held(path, inputs)
    assert ratios == [np.inf]
    assert set(computed(bundle)) == {"matmul"}
    assert elems(bundle, "matmul") == {"i8"}
    ports = (*bundle.manifest.inputs, *bundle.manifest.outputs)
    assert [(p.dtype, p.elem, p.zero) for p in ports] == [
        ("u8", "i8", -128), ("i8", "i8", 0), ("u8", "i8", -128)]  # fmt: skip
    bundle.save(tmp_path / "bundle")
    again, given = nacre.Bundle.load(tmp_path / "bundle"), feeds(inputs)
    assert np.array_equal(again.run(given)["y"], bundle.run(given)["y"])


def test_a_product_of_fake_quantised_matrices_is_one_of_bytes(tmp_path: Path) -> None:
    inputs: Shapes = {"a": ("f32", (2, 4, 8)), "b": ("f32", (2, 8, 5))}
    nodes = [*pair("a", "p", "s", "z"), *pair("b", "q", "bs", "bz"),
             node("MatMul", "p q", "m"), *pair("m", "y", "ys", "yz")]  # fmt: skip
    path = saved(tmp_path / "m.onnx", nodes, inputs, {"y": "f32"}, KNOWN)
    bundle, ratios = held(path, inputs)
    assert ratios == [np.inf]
    assert elems(bundle, "matmul") == {"i8"}


@pytest.mark.parametrize("precision", ["i8", "f16"])
def test_tables_of_unsigned_bytes(tmp_path: Path, precision: Precision) -> None:
    inputs: Shapes = {"i": ("i64", (1, 6))}
    table = RANDOM.integers(0, 256, (20, 8)).astype(np.uint8)
    weights = RANDOM.standard_normal((8, 5)).astype(np.float32)
    nodes = [node("Gather", "table i", "rows"), node("DequantizeLinear", "rows s z", "x"),
             node("MatMul", "x w", "m"), *pair("m", "y", "ys", "bz")]  # fmt: skip
    known = {**KNOWN, "table": table, "w": weights}
    path = saved(tmp_path / "m.onnx", nodes, inputs, {"y": "f32"}, known)
    bundle, (ratio,) = held(path, inputs, precision)
    assert elems(bundle, "gather") == {"i8"}
    assert ratio > 30
    assert not any(name.startswith("core.") for name in computed(bundle))


def test_integers_beside_constants_and_what_is_found_in_them(tmp_path: Path) -> None:
    inputs: Shapes = {"x": ("u8", (4, 4))}
    nodes = [node("Concat", "k x", "c", axis=1), node("ArgMax", "c", "i", axis=1),
             node("Pad", "c pads z", "p"), node("DequantizeLinear", "p s z", "d"),
             node("Relu", "d", "r"), node("QuantizeLinear", "r s z", "y")]  # fmt: skip
    known = {**KNOWN, "k": RANDOM.integers(0, 100, (4, 3)).astype(np.uint8),
             "pads": np.array([0, 1, 0, 1])}  # fmt: skip
    path = saved(tmp_path / "m.onnx", nodes, inputs, {"y": "u8", "i": "i64"}, known)
    _, ratios = held(path, inputs)
    assert ratios == [np.inf, np.inf]


@pytest.mark.parametrize("precision", ["i8", "f16"])
def test_pairs_of_sixteen_bits_give_their_ranges(tmp_path: Path, precision: Precision) -> None:
    inputs: Shapes = {"x": ("f32", (4, 16))}
    known = {"s": np.float32(1.2e-4), "z": np.int16(100), "ys": np.float32(1.5e-4),
             "w": RANDOM.standard_normal((16, 6)).astype(np.float32) * np.float32(0.3)}  # fmt: skip
    nodes = [*pair("x", "d", "s", "z"), node("MatMul", "d w", "m"), *pair("m", "y", "ys", "z")]
    path = saved(tmp_path / "m.onnx", nodes, inputs, {"y": "f32"}, known)
    bundle, (ratio,) = held(path, inputs, precision)
    assert ratio > (25 if precision == "i8" else 50)
    assert elems(bundle, "gemm") == {precision}
    assert any("16 bits" in note for note in bundle.manifest.notes) == (precision == "i8")


def test_a_gelu_in_steps_is_one_function(tmp_path: Path) -> None:
    inputs: Shapes = {"x": ("f32", (4, 16))}
    known = {**KNOWN, "root": np.float32(2**0.5), "one": np.float32(1), "half": np.float32(0.5),
             "es": np.float32(1 / 127), "us": np.float32(2 / 255), "n": np.uint8(0),
             "e": np.uint8(127)}  # fmt: skip
    nodes = [*pair("x", "d", "s", "z"), node("Div", "d root", "v"), node("Erf", "v", "f"),
             *pair("f", "g", "es", "e"), node("Add", "g one", "a"), *pair("a", "h", "us", "n"),
             node("Mul", "d h", "m"), *pair("m", "o", "s", "z"), node("Mul", "o half", "t"),
             *pair("t", "y", "bs", "bz")]  # fmt: skip
    path = saved(tmp_path / "m.onnx", nodes, inputs, {"y": "f32"}, known)
    bundle, (ratio,) = held(path, inputs)
    assert ratio > 25
    assert set(computed(bundle)) == {"gelu"}


def test_a_scale_for_each_channel_of_a_computed_tensor(tmp_path: Path) -> None:
    inputs: Shapes = {"x": ("f32", (1, 3, 6, 6))}
    known = {**KNOWN, "c": np.array([0.03, 0.02, 0.025], np.float32),
             "cz": np.array([0, 1, 2], np.int8),
             "w": RANDOM.standard_normal((4, 3, 1, 1)).astype(np.float32)}  # fmt: skip
    nodes = [node("QuantizeLinear", "x c cz", "q", axis=1),
             node("DequantizeLinear", "q c cz", "d", axis=1),
             node("Conv", "d w", "m"), *pair("m", "y", "s", "z")]  # fmt: skip
    path = saved(tmp_path / "m.onnx", nodes, inputs, {"y": "f32"}, known)
    _, (ratio,) = held(path, inputs)
    assert ratio > 30


def test_scales_of_half_precision(tmp_path: Path) -> None:
    inputs: Shapes = {"x": ("f16", (1, 3, 6, 6))}
    known = {"s": np.float16(0.03), "z": np.int8(0), "ws": np.float16(0.004), "ys": np.float16(0.1),
             "w": RANDOM.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8)}  # fmt: skip
    nodes = [*pair("x", "d", "s", "z"), node("DequantizeLinear", "w ws z", "v"),
             node("Conv", "d v", "m"), *pair("m", "y", "ys", "z")]  # fmt: skip
    path = saved(tmp_path / "m.onnx", nodes, inputs, {"y": "f16"}, known)
    bundle, (ratio,) = held(path, inputs)
    assert ratio > 40
    assert elems(bundle, "conv2d") == {"i8"}


@pytest.mark.parametrize("precision", ["i8", "f16"])
def test_products_of_whole_numbers_run_on_the_nmu(tmp_path: Path, precision: Precision) -> None:
    inputs: Shapes = {"x": ("u8", (1, 3, 8, 8))}
    known = {**KNOWN, "w": RANDOM.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8),
             "f": np.float32(3e-4), "b": np.ones((4, 1, 1), np.float32)}  # fmt: skip
    nodes = [node("ConvInteger", "x w z", "i"), node("Cast", "i", "c", to=1),
             node("Mul", "c f", "m"), node("Add", "m b", "y")]  # fmt: skip
    path = saved(tmp_path / "m.onnx", nodes, inputs, {"y": "f32"}, known)
    bundle, (ratio,) = held(path, inputs, precision)
    assert ratio > 40
    assert set(bundle.time().macs_by_unit) == {"NMU"}


@pytest.mark.parametrize("dtype", ["i8", "u8"])
def test_planes_of_integers_that_are_interpolated(tmp_path: Path, dtype: str) -> None:
    inputs: Shapes = {"x": (dtype, (1, 3, 5, 5))}
    zero = np.array(9, GRAPH_TYPES[dtype].dtype)
    known = {**KNOWN, "n": zero, "f": np.array([1, 1, 2, 2], np.float32)}
    nodes = [node("Resize", "x  f", "r", mode="linear"),
             node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]),
             node("DequantizeLinear", "p s n", "y")]  # fmt: skip
    path = saved(tmp_path / "m.onnx", nodes, inputs, {"y": "f32"}, known)
    bundle, (ratio,) = held(path, inputs)
    assert ratio > 35
    assert not any(name.startswith("core.") for name in computed(bundle))


def test_sums_that_the_model_gives_itself_are_exact(tmp_path: Path) -> None:
    skip_where_they_saturate()
    inputs: Shapes = {"x": ("u8", (4, 64))}
    known = {**KNOWN, "w": RANDOM.integers(-127, 128, (64, 5)).astype(np.int8)}
    nodes = [node("MatMulInteger", "x w z", "i"), node("Cast", "i", "y", to=1)]
    path = saved(tmp_path / "m.onnx", nodes, inputs, {"i": "i32", "y": "f32"}, known)
    _, ratios = held(path, inputs, calibration=[feeds(inputs)])
    assert ratios == [np.inf, np.inf]


def test_calibration_data_of_stored_integers(tmp_path: Path) -> None:
    inputs: Shapes = {"x": ("u8", (4, 8))}
    known = {**KNOWN, "w": RANDOM.standard_normal((8, 5)).astype(np.float32)}
    nodes = [node("DequantizeLinear", "x s z", "d"), node("MatMul", "d w", "m"),
             *pair("m", "y", "ys", "yz")]  # fmt: skip
    path = saved(tmp_path / "m.onnx", nodes, inputs, {"y": "f32"}, known)
    bundle, (ratio,) = held(path, inputs, calibration=[feeds(inputs) for _ in range(3)])
    assert ratio > 30
    assert bundle.manifest.losses
    with pytest.raises(nacre.InputError, match=r"CMP09.*float32, expected uint8"):
        nacre.compile(path, "npm4k", "i8", calibration=[{"x": np.zeros((4, 8), np.float32)}])

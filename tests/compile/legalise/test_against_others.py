"""Forms that models met in practice needed, against torch and onnxruntime."""

from __future__ import annotations

from collections.abc import Callable
from math import erf, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import nacre
from nacre.compile.options import Precision
from tests.compile.legalise.samples import Array
from tests.compile.test_random_graphs import TINY

DEVICES = {"f16": "npm4k", "f32": "nem_reference", "i8": "npm4k"}
LEAST = {"f16": 50.0, "f32": 100.0, "i8": 30.0}  # dB


def ratio(found: Array, expected: Array) -> float:
    """Signal over noise in dB."""
    noise = float(((found.astype(np.float64) - expected) ** 2).sum())
    return 10 * float(np.log10(float((expected.astype(np.float64) ** 2).sum()) / max(noise, 1e-30)))


def escaped(bundle: nacre.Bundle) -> list[tuple[str, ...]]:
    return [layer.escaped for layer in bundle.manifest.layers if layer.escaped]


def of_torch(
    net: Callable[..., Any],
    x: Array,
    device: str,
    precision: Precision,
    kept: dict[str | int, str] | None = None,
) -> nacre.Bundle:
    """A clean bundle that is as near to torch as its precision allows."""
    torch = pytest.importorskip("torch")
    data = [{"input": x}] if precision == "i8" else None
    args = (torch.from_numpy(x),)
    bundle = nacre.compile(
        net, device, precision, example_args=args, calibration=data, precision_map=kept
    )
    with torch.no_grad():
        expected = net(*args).numpy()
    (found,) = bundle.run({"input": x}).values()
    assert ratio(found, expected) > LEAST["f16" if kept else precision]
    assert bundle.validate({"input": x}).ok
    return bundle


@pytest.mark.heavy("compiles networks")
@pytest.mark.sampled(6)
@pytest.mark.parametrize("kept", [None, {"*": "f16"}])
@pytest.mark.parametrize("groups", [1, 2])
def test_norms_of_long_rows_are_islands_of_steps(
    groups: int, kept: dict[str | int, str] | None
) -> None:
    """As at f16: means by poolings, the same note."""
    nn = pytest.importorskip("torch").nn
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(groups, 8), nn.ReLU()).eval()
    x = np.random.default_rng(1).standard_normal((1, 3, 48, 48)).astype(np.float32)
    bundle = of_torch(net, x, TINY, "i8", kept)
    assert any("runs in steps" in note for note in bundle.manifest.notes)
    assert escaped(bundle) == []


UPWARD: dict[str, tuple[int, tuple[Any, ...], tuple[int, ...]]] = {
    "one axis": (1, (4, 6, 4, 2, 1), (1, 4, 9)),
    "two axes": (2, (4, 6, 2, 2), (1, 4, 5, 6)),
    "three axes": (3, (4, 6, 2, 2), (1, 4, 3, 4, 5)),
    "places that no weight reaches": (2, (4, 6, 2, (5, 3)), (1, 4, 5, 6)),
    "phases that overlap": (3, (4, 6, 3, (2, 1, 3), (1, 0, 1), (1, 0, 2), 2), (2, 4, 3, 4, 5)),
    "gaps": (3, (4, 6, 3, 2, 1, 1, 2, True, (2, 1, 1)), (1, 4, 3, 4, 5)),
}


@pytest.mark.sampled(3)
@pytest.mark.heavy("compiles networks")
@pytest.mark.parametrize("precision", ["f16", "f32", "i8"])
@pytest.mark.parametrize("name", UPWARD)
def test_transposed_convolutions(name: str, precision: Precision) -> None:
    nn = pytest.importorskip("torch").nn
    axes, given, shape = UPWARD[name]
    net = getattr(nn, f"ConvTranspose{axes}d")(*given).eval()
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    assert escaped(of_torch(net, x, DEVICES[precision], precision)) == []


def of_onnx(nodes: list[Any], constants: list[Any], x: Array, path: Path) -> tuple[Path, Array]:
    """A model from x to y, and what onnxruntime makes of it."""
    ort = pytest.importorskip("onnxruntime")
    graph = helper.make_graph(
        nodes, "model",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        constants,
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    model.ir_version = 10
    onnx.save(model, path / "model.onnx")
    (expected,) = ort.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    return path / "model.onnx", expected


def test_a_product_that_a_map_keeps_in_f16_is_cut_for_f16(tmp_path: Path) -> None:
    """One that fits L1 in integers of 8 bits, and not in floats of 16."""
    random = np.random.default_rng(2)
    x, weights = (random.standard_normal(s).astype(np.float32) for s in ((1, 5000), (5000, 3)))
    constants = [numpy_helper.from_array(weights, "w")]
    path, expected = of_onnx(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], constants, x, tmp_path
    )
    is_cut = {}
    for precision in ("f16", "i8"):
        bundle = nacre.compile(
            path, TINY, "i8", calibration=[{"x": x}], precision_map={"*": precision}
        )
        (found,) = bundle.run({"x": x}).values()
        assert ratio(found, expected) > LEAST[precision]
        assert bundle.validate({"x": x}).ok
        is_cut[precision] = any("too deep for L1" in note for note in bundle.manifest.notes)
    assert is_cut == {"f16": True, "i8": False}


@pytest.mark.parametrize("ceil", [0, 1])
@pytest.mark.parametrize("element", ["INT8", "UINT8"])
def test_the_largest_of_stored_integers(element: str, ceil: int, tmp_path: Path) -> None:
    """A `MaxPool` between `QuantizeLinear` and `DequantizeLinear`, at f16: no task by name."""
    pool: dict[str, Any] = {
        "kernel_shape": [3, 2],
        "strides": [2, 2],
        "pads": [1, 0, 1, 0],
        "ceil_mode": ceil,
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("MaxPool", ["q"], ["m"], **pool),
        helper.make_node("DequantizeLinear", ["m", "s", "z"], ["y"]),
    ]
    zero = {"INT8": 3, "UINT8": 131}[element]
    constants = [
        helper.make_tensor("s", TensorProto.FLOAT, (), [0.0625]),
        helper.make_tensor("z", TensorProto.DataType.Value(element), (), [zero]),
    ]
    x = np.random.default_rng(4).integers(-300, 300, (1, 5, 9, 8)).astype(np.float32) / 32
    path, expected = of_onnx(nodes, constants, x, tmp_path)
    bundle = nacre.compile(path, "npm4k")
    (found,) = bundle.run({"x": x}).values()
    np.testing.assert_array_equal(found, expected)
    assert escaped(bundle) == []


class Steps:
    """Nodes after each other, with integers of 16 bits between them."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def number(self, value: float, element: int = TensorProto.FLOAT) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(helper.make_tensor(name, element, (), [value]))
        return name

    def add(self, opcode: str, *inputs: str) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(opcode, inputs, [name]))
        return name

    def stored(self, value: str, low: float, high: float) -> str:
        step = (high - low) / 65535
        how = self.number(step), self.number(round(-low / step), TensorProto.UINT16)
        return self.add("DequantizeLinear", self.add("QuantizeLinear", value, *how), *how)


# The order of the factors, and how far the stored `erf` goes: all of its range, or less.
@pytest.mark.parametrize("precision", ["f16", "i8"])
@pytest.mark.parametrize(
    ("order", "share"),
    [("x gate half", 1.0), ("x half gate", 1.0), ("gate half x", 1.0), ("x gate half", 0.6)],
)
def test_a_gelu_between_integers_of_16_bits(
    order: str, share: float, precision: Precision, tmp_path: Path
) -> None:
    """One function, where what lies between its steps holds all that they reach; else as it is."""
    low, high = -2.9, 2.6
    ends = erf(low / sqrt(2)) * share, erf(high / sqrt(2)) * share
    steps = Steps()
    x = steps.stored("x", low, high)
    gate = steps.add("Erf", steps.add("Div", x, steps.number(sqrt(2))))
    gate = steps.add("Add", steps.stored(gate, *ends), steps.number(1.0))
    gate = steps.stored(gate, 0.0, 1 + ends[1])
    factors = {"x": x, "gate": gate, "half": steps.stored(steps.number(0.5), 0.0, 0.5)}
    first, second, third = (factors[name] for name in order.split())
    inner = {"x gate": (-0.34, 2 * high), "x half": (low / 2, high / 2), "gate half": (0, 1)}
    product = steps.stored(steps.add("Mul", first, second), *inner[" ".join(order.split()[:2])])
    y = steps.stored(steps.add("Mul", product, third), -0.17, high)
    steps.nodes.append(helper.make_node("Identity", [y], ["y"]))
    given = np.linspace(-5, 5, 1200, dtype=np.float32).reshape(10, 120)
    path, expected = of_onnx(steps.nodes, steps.constants, given, tmp_path)
    bundle = nacre.compile(path, "npm4k", precision)
    (found,) = bundle.run({"x": given}).values()
    if precision == "f16" or share == 1.0:
        assert ratio(found, expected) > LEAST[precision]
    assert ("core.Unary" in bundle.program) == (precision == "f16" and share < 1.0)

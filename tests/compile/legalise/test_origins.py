"""Where tasks come from: every one knows its operation and the nodes of the model.

The oracle is the model itself: its nodes have names, and each name says which kind of node it is.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import nacre
from nacre import core
from nacre.base.diagnostics import InputError
from nacre.cli.main import _exit_status
from nacre.compile.bundle.manifest import Manifest, Origin
from nacre.core.builder import Builder
from nacre.core.module import Module
from tests.compile.models import Array, values

pytestmark = pytest.mark.sampled(2)  # together they take long

# What a node may become, by its kind in ONNX, apart from what changes types and moves elements.
KINDS: dict[str, set[str]] = {
    "Conv": {"Conv", "QConv", "Linear", "QLinear"},
    "Gemm": {"Linear", "QLinear", "BinOp"},  # before floats it leaves in 16 bits, times its scale
    "Relu": {"ReluNan"},
    "MaxPool": {"MaxPool"},
    "GlobalAveragePool": {"AvgPool", "QPool"},
    "Add": {"BinOp"},
    "Softmax": {"Softmax", "BinOp"},  # of integers of 8 bits, times their scale
    "HardSigmoid": {"Clip"},
    "Mul": {"Silu", "Conv", "QConv"},  # x * Sigmoid(x), and channels times a vector
}
BETWEEN = {"Transpose", "Reshape", "Quantize", "Dequantize", "Cast"}


class Net:
    """A graph on its way; every node is called `/net/` and its output."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def add(self, kind: str, inputs: list[str], out: str, **given: int | list[int]) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [out], f"/net/{out}", **given))  # type: ignore[arg-type]
        return out

    def weight(self, name: str, array: Array) -> str:
        self.weights.append(numpy_helper.from_array(array.astype(np.float32), name))
        return name

    def conv(self, x: str, out: str, *shape: int, stride: int = 1) -> str:
        size = shape[-1]
        w = self.weight(f"{out}.w", values(shape, len(self.nodes), float(np.prod(shape[1:])) ** -1))
        given = {"kernel_shape": [size, size], "pads": [size // 2] * 4}
        return self.add("Conv", [x, w], out, strides=[stride] * 2, **given)

    def norm(self, x: str, out: str, channels: int) -> str:
        parts = [np.abs(values((channels,), i)) + 0.5 for i in range(4)]
        names = [self.weight(f"{out}.{i}", part) for i, part in enumerate(parts)]
        return self.add("BatchNormalization", [x, *names], out)

    def saved(self, path: Path, out: str, shape: list[int]) -> Path:
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])
        y = helper.make_tensor_value_info(out, TensorProto.FLOAT, shape)
        graph = helper.make_graph(self.nodes, "net", [x], [y], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        onnx.checker.check_model(model)
        onnx.save(model, path)
        return path


def residual_network(path: Path) -> Path:
    """A stem with a spelled-out SiLU, a block with a gate and a shortcut, a head."""
    net = Net()
    stem = net.norm(net.conv("x", "stem", 8, 3, 3, 3, stride=2), "stem_norm", 8)
    net.add("Sigmoid", [stem], "stem_gate")
    x = net.add("Mul", [stem, "stem_gate"], "stem_act")
    x = net.add("MaxPool", [x], "pool", kernel_shape=[2, 2], strides=[2, 2])
    y = net.add("Relu", [net.norm(net.conv(x, "one", 8, 8, 3, 3), "one_norm", 8)], "one_act")
    y = net.norm(net.conv(y, "two", 8, 8, 3, 3), "two_norm", 8)
    gate = net.add("GlobalAveragePool", [y], "squeeze")
    gate = net.add("Relu", [net.conv(gate, "gate_one", 4, 8, 1, 1)], "gate_act")
    gate = net.add("HardSigmoid", [net.conv(gate, "gate_two", 8, 4, 1, 1)], "gate")
    y = net.add("Mul", [y, gate], "gated")
    x = net.add("Relu", [net.add("Add", [y, x], "sum")], "sum_act")
    x = net.add("GlobalAveragePool", [x], "mean")
    x = net.add("Flatten", [x], "flat")
    names = [net.weight("head.w", values((5, 8), 1)), net.weight("head.b", values((5,), 2))]
    x = net.add("Gemm", [x, *names], "head", transB=1)
    return net.saved(path, net.add("Softmax", [x], "share", axis=-1), [1, 5])


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return residual_network(tmp_path_factory.mktemp("models") / "net.onnx")


def kinds_of(path: Path) -> dict[str, str]:
    return {node.name: node.op_type for node in onnx.load(path).graph.node}


def calibration() -> dict[str, Any]:
    return {"x": values((6, 1, 3, 16, 16), 5)}


def origins_of(manifest: Manifest) -> list[Origin]:
    return [origin for layer in manifest.layers for origin in layer.operations]


def compiled(
    path: Path, precision: str, precision_map: dict[str | int, str] | None = None
) -> nacre.Bundle:
    data = calibration() if precision == "i8" else None
    return nacre.compile(
        path,
        "npm4k",
        precision,  # type: ignore[arg-type]
        calibration=data,
        precision_map=precision_map,
    )


@pytest.mark.parametrize("precision", ["f16", "i8"])
def test_every_operation_is_booked_to_a_node_of_its_kind(network: Path, precision: str) -> None:
    kinds = kinds_of(network)
    for origin in origins_of(compiled(network, precision).manifest):
        assert origin.node in kinds, origin
        assert set(origin.also) <= kinds.keys()
        if origin.opcode not in BETWEEN:
            assert origin.opcode in KINDS[kinds[origin.node]], origin


@pytest.mark.parametrize("precision", ["f16", "i8"])
def test_every_node_that_computes_is_in_the_plan(network: Path, precision: str) -> None:
    found = origins_of(compiled(network, precision).manifest)
    named = {name for origin in found for name in (origin.node, *origin.also)}
    assert kinds_of(network).keys() - {"/net/flat"} <= named


def test_what_was_folded_in_is_named_beside(network: Path) -> None:
    found = {origin.node: origin.also for origin in origins_of(compiled(network, "f16").manifest)}
    assert found["/net/stem"] == ("/net/stem_norm",)
    assert found["/net/stem_act"] == ("/net/stem_gate",)
    assert found["/net/pool"] == ()


@pytest.mark.parametrize("precision", ["f16", "i8"])
def test_every_compute_task_makes_a_value_of_its_layer(network: Path, precision: str) -> None:
    bundle = compiled(network, precision)
    computing = {
        task.name: task.op
        for task in bundle.runnable_program.plan.program.tasks
        if task.op not in ("transfer", "store")
    }
    found = {token: v for layer in bundle.manifest.layers for token, v in layer.values.items()}
    assert found.keys() == computing.keys()
    opcodes = {token: bundle.legal.by_id[value].opcode for token, value in found.items()}
    products = {t for t, op in computing.items() if op in ("conv2d", "gemm")}
    assert products
    assert {opcodes[token].removeprefix("Q") for token in products} == {"Conv", "Linear"}
    pools = [opcodes[t] for t, op in computing.items() if op == "maxpool"]
    assert set(pools) == {"MaxPool"}


def test_comments_name_the_nodes(network: Path) -> None:
    program = compiled(network, "f16").program
    (line,) = [x for x in program.splitlines() if x.startswith("# maxpool_")]
    assert " MaxPool of /net/pool, tiles of " in line


def test_the_estimate_shows_the_names(network: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _exit_status(["estimate", str(network), "--device", "npm4k", "--layers", "all"]) == 0
    table = capsys.readouterr().out.split("layers on npm4k")[1]
    for name in ("stem", "pool", "one", "two", "gated", "head", "share"):
        assert f"/net/{name}\n" in table


def test_equal_nodes_that_become_one_are_both_named(tmp_path: Path) -> None:
    net = Net()
    ends = [net.add("MaxPool", ["x"], f"pool_{side}", kernel_shape=[2, 2]) for side in "ab"]
    path = net.saved(tmp_path / "twice.onnx", net.add("Mul", ends, "square"), [1, 3, 15, 15])
    found = {origin.node: origin.also for origin in origins_of(compiled(path, "f16").manifest)}
    assert found["/net/pool_a"] == ("/net/pool_b",)


# The precision map


def test_any_node_of_the_model_may_stay_in_floats(network: Path) -> None:
    names = [name for name in kinds_of(network) if name != "/net/flat"]
    floats = compiled(network, "i8", precision_map={**dict.fromkeys(names, "f16")})
    assert not any(op.opcode.startswith("Q") for op in floats.legal.operations)


@pytest.mark.parametrize("name", ["/net/one", "/net/one_norm", "/net/one_act"])
def test_one_node_is_its_layer_and_no_other(network: Path, name: str) -> None:
    found = origins_of(compiled(network, "i8", precision_map={name: "f16"}).manifest)
    between = BETWEEN | {"BinOp"}  # a zero point and a scale on the way into floats
    (one,) = [o.opcode for o in found if o.node == "/net/one" and o.opcode not in between]
    (two,) = [o.opcode for o in found if o.node == "/net/two" and o.opcode not in between]
    assert (one, two) == ("QConv" if name == "/net/one_act" else "Conv", "QConv")


def test_misspelt_names_are_all_told(network: Path) -> None:
    wrong: dict[str | int, str] = {"/net/one_nrom": "f16", "/net/stem_gaet": "f16", "%999": "f16"}
    with pytest.raises(InputError) as caught:
        compiled(network, "i8", precision_map=wrong)
    found = caught.value.diagnostics
    assert [d.code for d in found] == ["CMP10"] * 3
    assert found[0].help == "did you mean `/net/one_norm`?"
    assert found[1].help == "did you mean `/net/stem_gate`?"


def test_a_node_that_computes_nothing_is_no_layer() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (4, 8))
    idle = builder.add("Transpose", builder.add("Transpose", x, permutation=(1, 0)),
                       permutation=(1, 0))  # fmt: skip
    module = builder.module(builder.add("Linear", idle, builder.constant(values((8, 8), 1))))
    data = {"x": values((4, 4, 8), 2)}
    with pytest.raises(InputError) as caught:
        nacre.compile(module, "npm4k", "i8", calibration=data, precision_map={idle: "f16"})
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == (
        "CMP10", f"node `%{idle}` is in no layer: nothing is left of it to compute",
    )  # fmt: skip


# PyTorch


def test_layers_of_pytorch_keep_their_names() -> None:
    torch = pytest.importorskip("torch")
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(8, 8, 3, padding=1, bias=False)
            self.norm = nn.BatchNorm2d(8)
            self.act = nn.SiLU()

        def forward(self, x: Any) -> Any:  # noqa: ANN401 - torch.Tensor
            return x + self.act(self.norm(self.conv(x)))

    blocks = nn.Sequential(nn.Conv2d(3, 8, 3), Block(), Block(), nn.Flatten(), nn.Linear(1568, 4))
    example = (torch.zeros(1, 3, 16, 16),)
    bundle = nacre.compile(blocks.eval(), "npm4k", example_args=example)
    found = origins_of(bundle.manifest)
    mains = {"0", "4", *(f"{i}.{part}" for i in (1, 2) for part in ("conv", "act"))}
    assert mains <= {origin.node for origin in found}
    also = {origin.node: origin.also for origin in found}
    assert also["1.conv"] == ("1.norm",)
    assert all(origin.node is not None for origin in found)
    assert {o.node for o in found if o.opcode == "BinOp"} == {"add", "add_1"}


# Places of what is refused


def wide_softmax() -> Module:
    """A layer whose rows do not fit, on the third line of its text."""
    builder = Builder()
    x = builder.input("x", "f32", (1, 2_000_000))
    return builder.module(builder.add("Softmax", builder.add("Exp", x), axis=1))


def from_builder(folder: Path) -> tuple[object, str]:
    return wide_softmax(), "<module>:2:1"


def from_text(folder: Path) -> tuple[object, str]:
    path = folder / "wide.core"
    path.write_text(f"# a remark\n\n{wide_softmax()}")
    return path, f"{path}:4:1"


def from_onnx(folder: Path) -> tuple[object, str]:
    nodes = [
        helper.make_node("Exp", ["x"], ["e"], name="powers"),
        helper.make_node("Softmax", ["e"], ["y"], name="shares", axis=1),
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2_000_000])
        for name in ("x", "y")
    ]
    graph = helper.make_graph(nodes, "wide", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, folder / "wide.onnx")
    return folder / "wide.onnx", f"{folder / 'wide.onnx'}:1:1"


@pytest.mark.parametrize("source", [from_builder, from_text, from_onnx])
@pytest.mark.parametrize(("precision", "code"), [("f16", "CMP02"), ("f32", "CMP03")])
def test_what_is_refused_has_a_place_in_the_model(
    tmp_path: Path, source: Callable[[Path], tuple[object, str]], precision: str, code: str
) -> None:
    model, place = source(tmp_path)
    with pytest.raises(InputError) as caught:
        nacre.compile(model, "npm4k", precision)  # type: ignore[arg-type]
    found = caught.value.diagnostics
    assert {d.code for d in found} == {code}
    assert code != "CMP03" or len(found) == 1  # all that a device lacks in a type
    assert str(found[0].location) == place
    assert all(d.help for d in found)
    if source is from_onnx:
        assert "`powers`" in found[0].message
        assert any("`shares`" in d.message for d in found)


def test_an_input_that_comes_late_moves_no_place() -> None:
    text = """%0 = ConstTensor () {data=[1.0, 2.0], dtype=f32, shape=[2]} : tensor<f32[2]>
%1 = Input () {name="x"} : tensor<f32[4, 2]>
%2 = BinOp (%1, %0) {op=Add} : tensor<f32[4, 2]>
%3 = Unary (%2) {op=Sqrt} : tensor<f32[4, 2]>
outputs: %3
"""
    module = core.parse(text)
    with pytest.raises(InputError) as caught:
        nacre.compile(module, "npm4k", "f32")
    (found,) = caught.value.diagnostics
    assert ("`add`" in found.message, found.location.line) == (True, 3)


def test_calibration_data_that_an_operation_refuses_is_told_by_its_node(tmp_path: Path) -> None:
    builder = Builder()
    i = builder.input("i", "i64", (3,))
    table = builder.constant(values((8, 32), 1))
    rows = builder.add("Gather", table, i)
    module = builder.module(builder.add("Linear", rows, builder.constant(values((4, 32), 2))))
    with pytest.raises(InputError) as caught:
        nacre.compile(module, "npm4k", "i8", calibration=[{"i": np.array([1, 2, 9])}])
    (found,) = caught.value.diagnostics
    assert (found.code, str(found.location)) == ("CMP09", "<calibration>:1:1")
    assert f"sample 0: `Gather` %{rows}: index is 9" in found.message

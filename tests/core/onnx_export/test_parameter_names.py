"""Parameters of an exported model: names and identity survive, equal elements or not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from nacre import core  # noqa: E402
from nacre.core.module import Module  # noqa: E402
from nacre.core.values import Array  # noqa: E402
from tests.cli.runner import invoke  # noqa: E402


def model(parameters: dict[str, Array], nodes: list[tuple[str, str, str]]) -> Any:  # noqa: ANN401
    graph = helper.make_graph(
        [helper.make_node(kind, operands.split(), [result]) for kind, operands, result in nodes],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (4, 4))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (4, 4))],
        [numpy_helper.from_array(array, name) for name, array in parameters.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


NODES = [
    ("MatMul", "x first.weight", "u"), ("Add", "u first.bias", "v"),
    ("MatMul", "v second.weight", "w"), ("Add", "w second.bias", "y"),
]  # fmt: skip


def alike(number: float) -> dict[str, Array]:
    """Four parameters of which no two can be told apart by their elements."""
    weight, bias = np.full((4, 4), number, np.float32), np.full(4, number, np.float32)
    return {"first.weight": weight, "first.bias": bias, "second.weight": weight.copy(),
            "second.bias": bias.copy()}  # fmt: skip


def initialisers(path: Path) -> dict[str, Array]:
    return {t.name: numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer}


def names(module: Module) -> set[str]:
    assert module.labels is not None
    return {name for found in module.labels.parameters.values() for name in found}


@pytest.mark.parametrize("keep_parameters", [False, True])
@pytest.mark.parametrize("number", [0.0, 1.0, -0.5])
def test_equal_parameters_keep_names_of_their_own(
    tmp_path: Path, number: float, keep_parameters: bool
) -> None:
    given = alike(number)
    source = model(given, NODES).SerializeToString()
    module = core.from_onnx(source, keep_parameters=keep_parameters)
    core.to_onnx(module, tmp_path / "m.onnx")
    found = initialisers(tmp_path / "m.onnx")
    assert found.keys() == given.keys()
    for name, array in given.items():
        np.testing.assert_array_equal(found[name], array)
    again = core.from_onnx(tmp_path / "m.onnx", keep_parameters=keep_parameters)
    assert names(again) == names(module) == given.keys()


def test_a_changed_parameter_changes_nothing_else(tmp_path: Path) -> None:
    """Identity: whoever fills the second weight of an exported model leaves the first as it is."""
    core.to_onnx(core.from_onnx(model(alike(0.0), NODES).SerializeToString()), tmp_path / "m.onnx")
    loaded = onnx.load(tmp_path / "m.onnx")
    eye = np.eye(4, dtype=np.float32)
    for tensor in loaded.graph.initializer:
        if tensor.name in ("first.bias", "second.weight"):
            array = eye if tensor.name == "second.weight" else np.arange(4, dtype=np.float32)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    (found,) = core.evaluate(
        core.from_onnx(loaded.SerializeToString()), {"x": np.ones((4, 4), np.float32)}
    )
    np.testing.assert_array_equal(found, np.tile(np.arange(4, dtype=np.float32), (4, 1)))


def test_a_parameter_used_twice_is_one_initialiser(tmp_path: Path) -> None:
    weight = np.zeros((4, 4), np.float32)
    nodes = [("MatMul", "x tied", "u"), ("MatMul", "u tied", "y")]
    core.to_onnx(core.from_onnx(model({"tied": weight}, nodes).SerializeToString()),
                 tmp_path / "m.onnx")  # fmt: skip
    assert list(initialisers(tmp_path / "m.onnx")) == ["tied"]


def test_names_of_callers_come_before_those_of_parameters(tmp_path: Path) -> None:
    """A parameter called as an output of the module is called otherwise, and stays one."""
    module = core.from_onnx(model(alike(0.0), NODES).SerializeToString())
    assert module.labels is not None
    parameters = {key: ("y",) if "first.bias" in found else found
                  for key, found in module.labels.parameters.items()}  # fmt: skip
    labels = replace(module.labels, parameters=parameters)
    core.to_onnx(replace(module, labels=labels), tmp_path / "m.onnx")
    assert initialisers(tmp_path / "m.onnx").keys() == {
        "first.weight", "second.weight", "second.bias", "y.2"
    }  # fmt: skip


def test_the_command_keeps_them_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = alike(0.0)
    onnx.save(model(given, NODES), tmp_path / "a.onnx")
    done = invoke(capsys, "core", "convert", tmp_path / "a.onnx", "-o", tmp_path / "b.onnx")
    assert done.status == 0, done.text
    assert initialisers(tmp_path / "b.onnx").keys() == given.keys()


@pytest.mark.full
def test_modules_of_pytorch_keep_the_names_of_their_parameters(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(
        torch.nn.Linear(4, 4), torch.nn.LayerNorm(4), torch.nn.Linear(4, 4), torch.nn.LayerNorm(4)
    )
    for parameter in net.parameters():
        torch.nn.init.zeros_(parameter)
    core.to_onnx(core.from_torch(net, (torch.zeros(2, 4),)), tmp_path / "m.onnx")
    found = initialisers(tmp_path / "m.onnx")
    assert {name for name, _ in net.named_parameters()} <= found.keys()

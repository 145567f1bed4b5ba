"""Models from other tools on the command line: convert, its report, stats."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nacre import core
from nacre.cli.exit_status import ERRORS_FOUND, OK, WRONG_USAGE
from nacre.cli.main import _exit_status

onnx = pytest.importorskip("onnx")


def model(path: Path, *operations: str) -> Path:
    """A chain of operations of one operand over x[N, 4]."""
    helper = onnx.helper
    names = ["x", *(f"t{i}" for i in range(len(operations)))]
    nodes = [
        helper.make_node(op, [names[i]], [names[i + 1]], name=f"node{i}")
        for i, op in enumerate(operations)
    ]
    x = helper.make_tensor_value_info("x", 1, ["N", 4])
    y = helper.make_tensor_value_info(names[-1], 1, None)
    graph = helper.make_graph(nodes, "chain", [x], [y])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    made.ir_version = 9
    path.write_bytes(made.SerializeToString())
    return path


def run(*arguments: object) -> int:
    return _exit_status(["core", *map(str, arguments)])


@pytest.mark.parametrize("shape", ["x=2x4", "x=2,4"])
def test_an_onnx_model_becomes_a_module(tmp_path: Path, shape: str) -> None:
    path = model(tmp_path / "m.onnx", "Relu", "Sigmoid")
    out = tmp_path / "m.core"
    assert run("convert", path, "--shape", shape, "-o", out) == OK
    module = core.load(out)
    assert [op.opcode for op in module] == ["Input", "ReluNan", "Unary"]
    x = np.array([[-1, 0, 1, 2]] * 2, np.float32)
    (y,) = core.evaluate(module, {"x": x})
    assert np.allclose(y, 1 / (1 + np.exp(-np.maximum(x, 0))))


def test_the_model_keeps_its_names(tmp_path: Path) -> None:
    path = model(tmp_path / "m.onnx", "Relu", "Sigmoid")
    module = core.from_onnx(path, {"x": (2, 4)})
    assert module.output_names == ("t1",)
    assert module.labels is not None
    assert [module.labels.nodes[op.value_id] for op in module if op.opcode != "Input"] == [
        "node0",
        "node1",
    ]


def test_a_shape_that_is_open_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = model(tmp_path / "m.onnx", "Relu")
    assert run("convert", path, "-o", tmp_path / "m.core") == ERRORS_FOUND
    err = capsys.readouterr().err
    assert "ONX02" in err
    assert "--shape x=" in err
    assert not (tmp_path / "m.core").exists()


def test_the_report_says_what_is_refused_and_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = model(tmp_path / "m.onnx", "Relu", "Frobnicate", "Relu", "Relu")
    assert run("convert", path, "--shape", "x=2x4", "--report") == ERRORS_FOUND
    out = capsys.readouterr().out.splitlines()
    assert out[1].split()[:3] == ["Frobnicate", "1", "1"]
    assert "not known" in out[1]
    assert out[2].split() == ["Relu", "3", "-"]
    assert out[-1] == "4 nodes: 1 refused, 2 behind them not looked at"


def test_the_report_of_a_model_that_is_covered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = model(tmp_path / "m.onnx", "Relu", "Tanh")
    assert run("convert", path, "--shape", "x=2x4", "--report") == OK
    assert capsys.readouterr().out.endswith("2 nodes: all can be brought in\n")


def test_figures_of_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = model(tmp_path / "m.onnx", "Relu")
    assert run("stats", path, "--shape", "x=2x4", "--format", "json") == OK
    assert json.loads(capsys.readouterr().out)["operations"] == {"Input": 1, "ReluNan": 1}


def test_layers_have_the_names_of_the_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    helper = onnx.helper
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="first product")
    weights = onnx.numpy_helper.from_array(np.ones((4, 5), np.float32), "w")
    x = helper.make_tensor_value_info("x", 1, [2, 4])
    y = helper.make_tensor_value_info("y", 1, None)
    graph = helper.make_graph([node], "g", [x], [y], [weights])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    path = tmp_path / "m.onnx"
    path.write_bytes(made.SerializeToString())
    assert run("stats", path, "--layers") == OK
    row = capsys.readouterr().out.splitlines()[1]
    assert row.split() == ["first", "product", "MatMul", "40", "20", "tensor<f32[2,", "5]>"]


@pytest.mark.parametrize("shape", ["x", "x=", "=2", "x=2xb", "x=-1x4", "x=2x4,3"])
def test_shapes_that_are_none(tmp_path: Path, shape: str) -> None:
    path = model(tmp_path / "m.onnx", "Relu")
    expected = ERRORS_FOUND if shape == "x=" else WRONG_USAGE
    assert run("stats", path, "--shape", shape) == expected


def test_what_is_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"not a model at all")
    assert run("stats", path) == ERRORS_FOUND
    assert "ONX03" in capsys.readouterr().err
    assert run("convert", tmp_path / "missing.onnx", "--report") == WRONG_USAGE
    assert run("convert", tmp_path / "m.core", "--report") == WRONG_USAGE


@pytest.mark.parametrize(
    ("verb", "remedy"), [("check", "nacre compile"), ("nac info", "nac build")]
)
def test_a_model_of_another_kind_gets_the_verb_that_takes_it(
    verb: str, remedy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.onnx").write_bytes(b"\x08\x0a\x12\xff")
    assert _exit_status([*verb.split(), str(tmp_path / "m.onnx")]) == ERRORS_FOUND
    said = capsys.readouterr()
    assert remedy in said.out + said.err

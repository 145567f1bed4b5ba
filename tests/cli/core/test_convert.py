from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from nacre import core
from nacre.cli.core.convert import TARGETS
from nacre.core.builder import Builder
from nacre.core.mlir.export import to_mlir
from nacre.core.models import READERS
from tests.cli.runner import invoke, nacre, nacre_here, without_privileges

Capsys = pytest.CaptureFixture[str]

LAYER = """\
%0 = Input () {name="x"} : tensor<f32[2, 3]>
%1 = Relu (%0) : tensor<f32[2, 3]>
outputs: %1
"""
WRONG = LAYER.replace("%1 = Relu (%0) : tensor<f32[2, 3]>", "%1 = Relu (%0) : tensor<f32[3]>")
NO_FORM = """\
%0 = Input () {name="x"} : tensor<f32[2, 3]>
%1 = Index (%0) {indices=[2, 0]} : tensor<f32[]>
%2 = Index (%0) {indices=[0, 0]} : tensor<f32[]>
%3 = Index (%0) {indices=[0, 3]} : tensor<f32[]>
outputs: %1, %2, %3
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (("m.core", LAYER), ("wrong.core", WRONG), ("no_form.core", NO_FORM)):
        (tmp_path / name).write_text(text)
    return tmp_path


def files() -> list[str]:
    return sorted(os.listdir())


BEFORE = ["m.core", "no_form.core", "wrong.core"]


def test_the_suffix_says_what_to_convert_to(capsys: Capsys) -> None:
    outcome = invoke(capsys, "core", "convert", "m.core", "-o", "m.mlir")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == "wrote m.mlir: 2 operations\n"
    assert Path("m.mlir").read_text() == to_mlir(core.parse(LAYER))
    assert files() == sorted([*BEFORE, "m.mlir"])


@pytest.mark.parametrize("out", [(), ("-o", "-")])
def test_without_a_file_the_text_is_printed(capsys: Capsys, out: tuple[str, ...]) -> None:
    outcome = invoke(capsys, "core", "convert", "m.core", "--to", "mlir", *out)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == to_mlir(core.parse(LAYER))
    assert files() == BEFORE


def test_the_option_decides_for_a_name_that_says_nothing(capsys: Capsys) -> None:
    outcome = invoke(capsys, "core", "convert", "m.core", "-o", "m.txt", "--to", "mlir")
    assert outcome.status == 0
    assert Path("m.txt").read_text() == to_mlir(core.parse(LAYER))


def test_core_text_keeps_big_constants_beside_it(capsys: Capsys) -> None:
    build = Builder()
    x = build.input("x", "f32", (100,))
    table = build.constant(np.arange(100, dtype=np.float32))
    module = build.module(build.add("BinOp", x, table, op="Add"))
    Path("big.core").write_text(str(module))
    outcome = invoke(capsys, "core", "convert", "big.core", "-o", "c.core")
    assert (outcome.status, outcome.out) == (0, "wrote c.core: 3 operations\n")
    assert core.load("c.core") == module
    assert list(Path().glob("c.core.*.safetensors"))
    printed = invoke(capsys, "core", "convert", "c.core", "--to", "core")
    assert printed.out == str(module)


def test_a_module_is_read_from_standard_input() -> None:
    outcome = nacre_here("core", "convert", "-", "--to", "mlir", stdin=LAYER.encode())
    assert (outcome.status, outcome.out) == (0, to_mlir(core.parse(LAYER)))


@pytest.mark.parametrize("target", TARGETS)
def test_a_wrong_module_leaves_no_file(capsys: Capsys, target: str) -> None:
    outcome = invoke(capsys, "core", "convert", "wrong.core", "-o", f"w.{target}")
    assert (outcome.status, outcome.out) == (1, "")
    assert "error[MOD11]" in outcome.err
    assert "--> wrong.core:2:1" in outcome.err
    assert files() == BEFORE


def test_everything_without_a_form_in_mlir_is_shown_and_nothing_is_written(capsys: Capsys) -> None:
    Path("old.mlir").write_text("as it was")
    outcome = invoke(capsys, "core", "convert", "no_form.core", "-o", "old.mlir")
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err.count("error[MLR01]") == 2
    assert "--> no_form.core:2:1" in outcome.err
    assert "--> no_form.core:4:1" in outcome.err
    assert Path("old.mlir").read_text() == "as it was"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("m.core",), "nothing says what to convert to, expected --to or -o FILE"),
        (("m.core", "-o", "-"), "nothing says what to convert to"),
        (("m.core", "-o", "m.bin"), "expected a name in `.core` or `.mlir` or `.onnx`, or --to"),
        (("m.core", "-o", "m.mlir", "--to", "core"), "--to says core, the name `m.mlir` says mlir"),
        (
            ("m.bin", "--to", "mlir"),
            "cannot tell how to read `m.bin`, expected a name in `.core` or `.onnx` or `.pt2`",
        ),
        (("m.core", "--to", "tflite"), "'tflite' is not one of 'core', 'mlir', 'onnx'"),
        (("m.core", "--to", "onnx"), "an ONNX model is no text, expected -o FILE"),
        (("none.core", "--to", "mlir"), "nacre: none.core does not exist"),
        (("m.core", "-o", "none/m.mlir"), "cannot write none/m.mlir: none is no folder"),
    ],
)
def test_wrong_usage_says_what_is_possible(
    capsys: Capsys, arguments: tuple[str, ...], message: str
) -> None:
    outcome = invoke(capsys, "core", "convert", *arguments)
    assert (outcome.status, outcome.out) == (2, "")
    assert message in outcome.err
    assert files() == BEFORE


def test_a_folder_that_may_not_be_written_is_wrong_usage(folder: Path) -> None:
    shut = folder / "shut"
    shut.mkdir(mode=0o500)
    outcome = nacre("core", "convert", "m.core", "-o", "shut/m.mlir", before=without_privileges)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err == "nacre: cannot write shut/m.mlir: Permission denied\n"
    assert list(shut.iterdir()) == []


def test_help_names_every_form(capsys: Capsys) -> None:
    outcome = invoke(capsys, "core", "convert", "--help")
    assert outcome.status == 0
    for suffix in (*READERS, *(target.suffix for target in TARGETS.values())):
        assert f"`{suffix}`" in outcome.out


# Inputs of ONNX models that are bound to values


@pytest.fixture
def scaled(folder: Path) -> str:
    """A model that multiplies x[2, 3] by a number of its own input."""
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    inputs = [
        helper.make_tensor_value_info("x", 1, [2, 3]),
        helper.make_tensor_value_info("k", 7, []),
    ]
    nodes = [
        helper.make_node("Cast", ["k"], ["f"], to=1),
        helper.make_node("Mul", ["x", "f"], ["y"]),
    ]
    outputs = [helper.make_tensor_value_info("y", 1, [2, 3])]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), "scaled.onnx")
    return "scaled.onnx"


@pytest.mark.parametrize("value", ["3", "k.npy"])
def test_an_input_is_bound_to_a_value(capsys: Capsys, scaled: str, value: str) -> None:
    np.save("k.npy", np.array(3))
    outcome = invoke(capsys, "core", "convert", scaled, "--constant", f"k={value}", "--to", "core")
    assert (outcome.status, outcome.err) == (0, "")
    assert list(core.parse(outcome.out).input_types) == ["x"]
    assert "3.0" in outcome.out


def test_a_report_takes_values_too(capsys: Capsys, scaled: str) -> None:
    outcome = invoke(capsys, "core", "convert", scaled, "--report", "--constant", "k=3")
    assert (outcome.status, outcome.err) == (0, "")
    assert "2 nodes: all can be brought in" in outcome.out


def test_what_is_evaluated_takes_values_too(capsys: Capsys, scaled: str) -> None:
    np.save("x.npy", np.arange(6, dtype=np.float32).reshape(2, 3))
    given = ["core", "eval", scaled, "--input", "x=x.npy", "--output", "0=y.npy"]
    outcome = invoke(capsys, *given, "--constant", "k=3")
    assert (outcome.status, outcome.err) == (0, "")
    assert np.load("y.npy").tolist() == [[0, 3, 6], [9, 12, 15]]
    outcome = invoke(capsys, *given)
    assert outcome.status == 1
    assert "input `k` is missing" in outcome.err


def test_what_is_counted_takes_values_too(capsys: Capsys, scaled: str) -> None:
    outcome = invoke(capsys, "core", "stats", scaled, "--constant", "k=3", "--format", "json")
    assert (outcome.status, outcome.err) == (0, "")
    figures = json.loads(outcome.out)
    assert list(figures["inputs"]) == ["x"]
    assert "Cast" not in figures["operations"]


def test_bytes_that_are_made_wide_count_as_parameters_only(capsys: Capsys, folder: Path) -> None:
    onnx = pytest.importorskip("onnx")
    helper, side = onnx.helper, 64
    weights = onnx.numpy_helper.from_array(np.ones((side, side), np.uint8), "w")
    zero = onnx.numpy_helper.from_array(np.array(3, np.uint8), "z")
    inputs = [helper.make_tensor_value_info("x", 2, [1, side])]
    outputs = [helper.make_tensor_value_info("y", 6, [1, side])]
    node = helper.make_node("MatMulInteger", ["x", "w", "", "z"], ["y"], "product")
    graph = helper.make_graph([node], "g", inputs, outputs, [weights, zero])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), "q.onnx")
    outcome = invoke(capsys, "core", "stats", "q.onnx", "--format", "json")
    figures = json.loads(outcome.out)
    (layer,) = figures["layers"]
    assert (layer["name"], layer["parameters"]) == ("product", side * side)
    assert figures["activation_peak_bytes"] < side * side


@pytest.mark.parametrize("verb", ["eval", "stats"])
def test_values_elsewhere_are_for_onnx_models_too(capsys: Capsys, verb: str) -> None:
    outcome = invoke(capsys, "core", verb, "m.core", "--constant", "x=3")
    assert outcome.status == 2
    assert "--constant is for ONNX models" in outcome.err


@pytest.mark.parametrize("value", ["k", "k=", "=3", "k=three", "k=3.txt", "k=" + "9" * 60])
def test_what_is_no_value(capsys: Capsys, scaled: str, value: str) -> None:
    outcome = invoke(capsys, "core", "convert", scaled, "--to", "core", "--constant", value)
    assert outcome.status == 2
    assert "is neither NAME=FILE.npy nor NAME=NUMBER" in outcome.err


@pytest.mark.parametrize(
    ("value", "status", "told"),
    [
        ("nobody=3", 1, "the model has no input `nobody`"),
        ("k=2.5", 1, "input `k` was given f64[], the model says i64[]"),
        ("k=true", 1, "was given bool[], the model says i64[]"),
        ("k=missing.npy", 2, "missing.npy"),
        ("k=m.npy", 1, "is no .npy file"),
    ],
)
def test_values_that_do_not_fit(
    capsys: Capsys, scaled: str, value: str, status: int, told: str
) -> None:
    Path("m.npy").write_bytes(b"no array")
    outcome = invoke(capsys, "core", "convert", scaled, "--to", "core", "--constant", value)
    assert outcome.status == status
    assert told in outcome.err


def test_values_are_for_onnx_models(capsys: Capsys) -> None:
    outcome = invoke(capsys, "core", "convert", "m.core", "--to", "mlir", "--constant", "x=3")
    assert outcome.status == 2
    assert "--constant is for ONNX models" in outcome.err


def test_what_is_odd_about_a_model_is_said(capsys: Capsys, scaled: str) -> None:
    onnx = pytest.importorskip("onnx")
    model = onnx.load(scaled)
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 7
    onnx.save(model, scaled)
    outcome = invoke(capsys, "core", "convert", scaled, "--constant", "k=3", "--to", "core")
    assert outcome.status == 0
    assert "warning[ONX08]" in outcome.err
    assert list(core.parse(outcome.out).input_types) == ["x"]

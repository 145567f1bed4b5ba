"""Inputs with a default: they are fixed to it, and that is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import nacre
from nacre.base.diagnostics import Diagnostic
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module
from nacre.core.onnx.coverage import coverage
from nacre.core.onnx.importer import from_onnx
from tests.cli.runner import invoke

F32 = np.float32


def _model(weights: int, version: int, listed: bool = True, props: str = "") -> bytes:
    """The sum of x and weights, which may all be inputs too."""
    names = [f"w{i}" for i in range(weights)]
    floats = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in ("x", *names)]
    held = [numpy_helper.from_array(np.full(2, i + 1, F32), n) for i, n in enumerate(names)]
    nodes = [helper.make_node("Sum", ["x", *names], ["y"])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])]
    if props:
        nodes.append(helper.make_node("Neg", ["w0"], ["n"]))
        outputs.append(helper.make_tensor_value_info("n", TensorProto.FLOAT, [2]))
    graph = helper.make_graph(nodes, "g", floats if listed else floats[:1], outputs, held)
    imports = [helper.make_opsetid("", 13)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=version)
    if props:
        model.metadata_props.add(key="nacre.state", value=props)
    raw: bytes = model.SerializeToString()
    return raw


def _warned(raw: bytes, **given: Any) -> tuple[Module, list[Diagnostic]]:  # noqa: ANN401
    odd: list[Diagnostic] = []
    return from_onnx(raw, warn=odd.append, **given), odd


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (1, "input `w0` has a default and is fixed to it"),
        (2, "2 inputs have defaults and are fixed to them: `w0`, `w1`"),
        (9, "9 inputs have defaults and are fixed to them: `w0`, `w1`, `w2`, `w3` and 5 more"),
    ],
)
def test_one_warning_names_the_inputs(count: int, told: str, tmp_path: Path) -> None:
    module, odd = _warned(_model(count, 8))
    assert list(module.input_types) == ["x"]
    (y,) = evaluate(module, {"x": np.zeros(2, F32)})
    assert y.tolist() == [count * (count + 1) / 2] * 2
    assert [(d.code, d.severity, d.message) for d in odd] == [("ONX10", "warning", told)]
    assert "take its initialiser out" in (odd[0].help or "")
    (tmp_path / "m.onnx").write_bytes(_model(count, 8))
    found = coverage(tmp_path / "m.onnx")
    assert found.is_whole
    assert found.notes == (told,)
    assert found.as_text().splitlines()[-1] == f"note: {told}"


@pytest.mark.parametrize(
    "use",
    [
        lambda path, warn: nacre.compile(path, "npm4k", warn=warn),
        lambda path, warn: nacre.compile(
            path, "npm4k", constants={"w1": np.full(2, 10, F32)}, warn=warn
        ),
        lambda path, warn: nacre.estimate(path, "npm4k", warn=warn),
        lambda path, warn: nacre.nac.build(path, warn=warn),
    ],
    ids=["compile", "compile-bound", "estimate", "build"],
)
def test_whatever_takes_a_file_tells(use: Callable[..., Any], tmp_path: Path) -> None:
    path, odd = tmp_path / "m.onnx", list[Diagnostic]()
    path.write_bytes(_model(2, 8))
    use(path, odd.append)
    assert [d.code for d in odd] == ["ONX10"]


@pytest.mark.parametrize(
    "verb",
    ["nac build -o m.nac", "nac convert -o m.nac", "core convert -o m.core",
     "compile --device npm4k -o b", "estimate --device npm4k"],
)  # fmt: skip
def test_every_verb_tells(
    verb: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.onnx").write_bytes(_model(2, 8))
    result = invoke(capsys, *verb.split(), "m.onnx")
    assert result.status == 0
    assert result.err.count("warning[ONX10]: 2 inputs have defaults") == 1


@pytest.mark.parametrize(("version", "listed"), [(3, True), (4, False), (10, False)])
def test_weights_that_are_no_defaults_are_not_told_of(version: int, listed: bool) -> None:
    module, odd = _warned(_model(3, version, listed))
    assert (list(module.input_types), odd) == (["x"], [])


def test_an_input_that_is_given_a_value_is_not_told_of() -> None:
    module, odd = _warned(_model(2, 8), constants={"w1": np.full(2, 10, F32)})
    assert evaluate(module, {"x": np.zeros(2, F32)})[0].tolist() == [11, 11]
    assert [d.message for d in odd] == ["input `w0` has a default and is fixed to it"]
    assert not _warned(_model(1, 8), constants={"w0": np.ones(2, F32)})[1]


def test_a_state_is_not_told_of() -> None:
    module, odd = _warned(_model(1, 8, props='[{"input": "w0", "output": "n"}]'))
    assert (len(module.states), odd) == (1, [])

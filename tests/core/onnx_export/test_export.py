"""The file of a model: names, states, large constants, and what is refused."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from nacre.base.diagnostics import InputError
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import CoreSession, evaluate
from nacre.core.module import Labels, Module
from nacre.core.onnx.importer import from_onnx
from nacre.core.onnx.reading import files
from nacre.core.onnx_export.export import to_onnx
from nacre.core.text.reader import parse
from tests.cli.runner import invoke
from tests.core.onnx_export.running import assert_close, operations_of, run, session_of

Capsys = pytest.CaptureFixture[str]

NO_FORM = """\
%0 = Input () {name="x"} : tensor<f64[2, 3]>
%1 = Unary (%0) {op=Erf} : tensor<f64[2, 3]>
%2 = Neg (%1) : tensor<f64[2, 3]>
%3 = Index (%2) {indices=[2, 0]} : tensor<f64[]>
outputs: %2, %3
"""


def weighted(size: int = 40) -> Module:
    """A product plus a bias, with constants of `size` rows."""
    builder = Builder()
    x = builder.input("x", "f32", (2, size))
    w = builder.constant(np.random.default_rng(1).normal(0, 1, (size, 30)).astype(np.float32))
    b = builder.constant(np.arange(30, dtype=np.float32))
    product = builder.add("MatMul", x, w)
    return builder.module(builder.add("BinOp", product, b, op="Add"))


def counter() -> Module:
    """A total that grows by x in every run; the output is twice the total."""
    builder = Builder()
    x, total = builder.input("x", "f32", (2,)), builder.input("total", "f32", (2,))
    start = builder.constant(np.array([10, 20], np.float32))
    following = builder.add("BinOp", x, total, op="Add")
    builder.state("total", following, start)
    return builder.module(builder.add("BinOp", following, following, op="Add"))


def test_names_of_the_model_are_kept(tmp_path: Path) -> None:
    labels = Labels(("sum",), {3: "/first/MatMul", 4: "/first/Add"})
    module = replace(weighted(), labels=labels)
    to_onnx(module, tmp_path / "m.onnx")
    graph = onnx.load(tmp_path / "m.onnx").graph
    assert [value.name for value in graph.input] == ["x"]
    assert [value.name for value in graph.output] == ["sum"]
    assert [node.name for node in graph.node] == ["/first/MatMul", "/first/Add"]
    assert from_onnx(tmp_path / "m.onnx").output_names == ("sum",)


def test_outputs_that_are_inputs_constants_or_twice_the_same(tmp_path: Path) -> None:
    builder = Builder()
    x = builder.input("output1", "f32", (2,))
    c = builder.constant(np.array([3, 4], np.float32))
    y = builder.add("Neg", x)
    module = builder.module(x, c, y, y, x)
    inputs = {"output1": np.array([1, -2], np.float32)}
    assert_close(run(module, inputs, tmp_path), evaluate(module, inputs))
    names = [value.name for value in onnx.load(tmp_path / "model.onnx").graph.output]
    assert len({*names, "output1"}) == 6
    assert names[2:4] == ["output2", "output3"]


@pytest.mark.parametrize("dtype", ["i4", "u4"])
def test_an_output_of_four_bits_that_is_an_input(dtype: str, tmp_path: Path) -> None:
    builder = Builder()
    x = builder.input("x", "i8", (3,))
    tiny = builder.add("Cast", x, to=dtype)
    module = builder.module(tiny, tiny)
    to_onnx(module, tmp_path / "m.onnx")
    assert len(session_of(tmp_path / "m.onnx").get_outputs()) == 2


def test_names_that_meet_ours_or_are_no_unicode(tmp_path: Path) -> None:
    builder = Builder()
    names = ["%4", "%4.2", "f32 0.0", "\x01", "a b"]
    values = [builder.input(name, "f32", (2,)) for name in names]
    result = values[0]
    for value in values[1:]:
        result = builder.add("Relu", builder.add("BinOp", result, value, op="Add"))
    module = replace(
        builder.module(result), labels=Labels(("%4",), {6: "same", 8: "same", 9: "\ud800"})
    )
    to_onnx(module, tmp_path / "m.onnx")
    session = session_of(tmp_path / "m.onnx")
    given = {value.name: np.array([1, 2], np.float32) for value in session.get_inputs()}
    assert session.run(None, given)[0].tolist() == [5, 10]
    nodes = [node.name for node in onnx.load(tmp_path / "m.onnx").graph.node]
    assert len(set(nodes)) == len(nodes)


def test_state_is_an_input_with_a_default_and_an_output(tmp_path: Path) -> None:
    module = counter()
    to_onnx(module, tmp_path / "m.onnx")
    session, ours = session_of(tmp_path / "m.onnx"), CoreSession(module)
    metadata = session.get_modelmeta().custom_metadata_map
    assert json.loads(metadata["nacre.state"]) == [{"input": "total", "output": "total.next"}]
    assert [value.name for value in session.get_overridable_initializers()] == ["total"]
    given = {"x": np.array([1, 2], np.float32)}
    for _ in range(3):
        output, following = session.run(["output0", "total.next"], given)
        assert_close([output], ours.run({"x": given["x"]}))
        given = {"x": given["x"], "total": following}


def test_the_same_module_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        to_onnx(weighted(), tmp_path / name, most_inline=0)
    (one,), (other,) = tmp_path.glob("a.*.data"), tmp_path.glob("b.*.data")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes().replace(
        other.name.encode(), one.name.encode()
    )
    assert one.read_bytes() == other.read_bytes()


def test_large_constants_lie_beside_the_model(tmp_path: Path) -> None:
    module, path = weighted(), tmp_path / "m.onnx"
    inputs = {"x": np.ones((2, 40), np.float32)}
    to_onnx(module, path, most_inline=1000)
    (beside,) = tmp_path.glob("m.onnx.*.data")
    assert sorted(os.listdir(tmp_path)) == sorted(["m.onnx", beside.name])
    assert beside.stat().st_size == 40 * 30 * 4
    assert path.stat().st_size < 1000
    expected = evaluate(module, inputs)
    assert_close(session_of(path).run(None, inputs), expected, 8, 1e-6)
    assert_close(evaluate(from_onnx(path), inputs), expected, 8, 1e-6)


def test_a_model_is_read_and_written_in_the_same_place(tmp_path: Path) -> None:
    path, inputs = tmp_path / "m.onnx", {"x": np.ones((2, 40), np.float32)}
    to_onnx(weighted(), path, most_inline=0)
    to_onnx(from_onnx(path), path, most_inline=0)
    assert_close(evaluate(from_onnx(path), inputs), evaluate(weighted(), inputs))


def test_what_no_output_needs_is_left_out(tmp_path: Path) -> None:
    builder = Builder()
    x = builder.input("x", "f32", (2,))
    builder.add("Exp", x)
    builder.constant(np.zeros(9, np.float32))
    to_onnx(builder.module(builder.add("Neg", x)), tmp_path / "m.onnx")
    assert operations_of(tmp_path / "m.onnx") == ["Neg"]
    assert not onnx.load(tmp_path / "m.onnx").graph.initializer


def test_everything_without_a_form_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"as it was")
    with pytest.raises(InputError) as caught:
        to_onnx(parse(NO_FORM), path)
    found = caught.value.diagnostics
    assert [d.code for d in found] == ["EXP01", "EXP01"]
    assert [d.span.source.position(d.span.start)[0] for d in found] == [2, 4]
    assert "onnxruntime has no Erf of `f64`" in found[0].message
    assert "index 2 along axis 0, expected 0 to 1" in found[1].message
    assert path.read_bytes() == b"as it was"
    assert os.listdir(tmp_path) == ["m.onnx"]


def test_a_wrong_module_is_told_by_the_verifier(tmp_path: Path) -> None:
    wrong = NO_FORM.replace("%2 = Neg (%1) : tensor<f64[2, 3]>", "%2 = Neg (%1) : tensor<f64[3]>")
    with pytest.raises(InputError) as caught:
        to_onnx(parse(wrong), tmp_path / "m.onnx")
    assert "EXP01" not in {d.code for d in caught.value.diagnostics}
    assert not os.listdir(tmp_path)


def test_without_the_package_the_help_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "onnx", None)
    with pytest.raises(InputError) as caught:
        to_onnx(weighted(), tmp_path / "m.onnx")
    assert caught.value.diagnostics[0].code == "ONX07"


def test_the_command_writes_a_model(
    capsys: Capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.core").write_text(str(weighted()))
    outcome = invoke(capsys, "core", "convert", "m.core", "-o", "m.onnx")
    assert (outcome.status, outcome.out) == (0, "wrote m.onnx: 5 operations\n")
    assert operations_of(tmp_path / "m.onnx") == ["MatMul", "Add"]
    printed = invoke(capsys, "core", "convert", "m.core", "--to", "onnx")
    assert (printed.status, printed.out) == (2, "")
    assert "an ONNX model is no text, expected -o FILE" in printed.err
    (tmp_path / "n.core").write_text(NO_FORM)
    refused = invoke(capsys, "core", "convert", "n.core", "-o", "n.onnx")
    assert (refused.status, refused.err.count("error[EXP01]")) == (1, 2)
    assert "--> n.core:4:1" in refused.err
    assert not (tmp_path / "n.onnx").exists()


def test_a_constant_that_nobody_could_make_is_refused(tmp_path: Path) -> None:
    text = "%0 = Iota () {axis=0, dtype=i64, shape=[1099511627776]} : tensor<i64[1099511627776]>"
    with pytest.raises(InputError) as caught:
        to_onnx(parse(f"{text}\noutputs: %0\n"), tmp_path / "m.onnx")
    assert [d.code for d in caught.value.diagnostics] == ["EXP01"]
    assert "a constant of 1,099,511,627,776 elements" in caught.value.diagnostics[0].message

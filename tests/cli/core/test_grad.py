from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from nacre import core
from tests.cli.runner import invoke, nacre_here

Capsys = pytest.CaptureFixture[str]

LAYER = """\
%0 = Input () {name="x"} : tensor<f32[2, 3]>
%1 = Input () {name="w"} : tensor<f32[3]>
%2 = Input () {name="at"} : tensor<i64[2]>
%3 = BinOp (%0, %1) {op=Mul} : tensor<f32[2, 3]>
%4 = Sum (%3) {axes=[], keepdims=false} : tensor<f32[]>
outputs: %4
"""
WRONG = LAYER.replace("op=Mul} : tensor<f32[2, 3]>", "op=Mul} : tensor<f32[3]>")
QUANTISED = """\
%0 = Input () {name="x"} : tensor<f32[2]>
%1 = ConstF32 () {value=0.5} : tensor<f32[]>
%2 = Quantize (%0, %1) {to=i8} : tensor<i8[2]>
%3 = Dequantize (%2, %1) : tensor<f32[2]>
outputs: %3
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (("m.core", LAYER), ("wrong.core", WRONG), ("q.core", QUANTISED)):
        (tmp_path / name).write_text(text)
    return tmp_path


BEFORE = ["m.core", "q.core", "wrong.core"]


def files() -> list[str]:
    return sorted(os.listdir())


def test_gradients_are_printed_in_the_order_of_their_names(capsys: Capsys) -> None:
    outcome = invoke(capsys, "core", "grad", "m.core", "--wrt", "w", "--wrt", "x")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == str(core.grad(core.parse(LAYER), ["w", "x"]))
    module = core.parse(outcome.out)
    assert [type_.shape for type_ in module.output_types] == [(), (3,), (2, 3)]
    inputs = {"x": np.ones((2, 3), np.float32), "w": np.arange(3, dtype=np.float32)}
    found = core.evaluate(module, {**inputs, "at": np.zeros(2, np.int64)})
    assert [array.tolist() for array in found] == [6.0, [2.0] * 3, [[0.0, 1.0, 2.0]] * 2]
    assert files() == BEFORE


def test_a_file_is_written_and_read_back(capsys: Capsys) -> None:
    outcome = invoke(capsys, "core", "grad", "m.core", "--wrt", "x", "-o", "g.core")
    module = core.grad(core.parse(LAYER), ["x"])
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == f"wrote g.core: {len(module)} operations\n"
    assert core.load("g.core") == module


def test_a_module_is_read_from_standard_input() -> None:
    outcome = nacre_here("core", "grad", "-", "--wrt", "x", stdin=LAYER.encode())
    assert (outcome.status, outcome.out) == (0, str(core.grad(core.parse(LAYER), ["x"])))


@pytest.mark.parametrize(
    ("file", "names", "expected"),
    [
        ("m.core", ("y",), ["error[GRD02]: the module has no input `y`"]),
        ("m.core", ("wx", "at"), ["error[GRD02]", "error[GRD03]", "--> m.core:3:1"]),
        ("q.core", ("x",), ["q.core:3:1", "`Quantize` %2", "q.core:4:1", "`Dequantize` %3"]),
        ("wrong.core", ("x",), ["error[MOD11]", "--> wrong.core:4:1"]),
    ],
)
def test_what_is_wrong_is_shown_and_nothing_is_written(
    capsys: Capsys, file: str, names: tuple[str, ...], expected: list[str]
) -> None:
    asked = [part for name in names for part in ("--wrt", name)]
    outcome = invoke(capsys, "core", "grad", file, *asked, "-o", "g.core")
    assert (outcome.status, outcome.out) == (1, "")
    for part in expected:
        assert part in outcome.err
    assert files() == BEFORE


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("m.core",), "Missing option '--wrt'"),
        (("none.core", "--wrt", "x"), "nacre: none.core does not exist"),
        (("m.core", "--wrt", "x", "-o", "none/g.core"), "cannot write none/g.core"),
    ],
)
def test_wrong_usage_says_so(capsys: Capsys, arguments: tuple[str, ...], message: str) -> None:
    outcome = invoke(capsys, "core", "grad", *arguments)
    assert (outcome.status, outcome.out) == (2, "")
    assert message in outcome.err
    assert files() == BEFORE

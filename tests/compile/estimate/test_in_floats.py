"""A plan on integers that is slower than one in f16 says so, with both numbers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import nacre  # noqa: E402
from tests.cli.runner import invoke  # noqa: E402

Capsys = pytest.CaptureFixture[str]
STEPS, BATCH, WIDTH, HIDDEN = 2, 2, 6, 8


def save_recurrent(folder: Path, *, has_lengths: bool) -> None:
    """An LSTM; with lengths, every step chooses by the element between old and new."""
    draw = np.random.default_rng(5)
    weights = [
        numpy_helper.from_array((draw.normal(size=shape) * 0.3).astype(np.float32), name)
        for name, shape in (
            ("w", (1, 4 * HIDDEN, WIDTH)),
            ("r", (1, 4 * HIDDEN, HIDDEN)),
            ("b", (1, 8 * HIDDEN)),
        )
    ]
    lengths = ["lengths"] if has_lengths else []
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, (STEPS, BATCH, WIDTH))]
    inputs += [helper.make_tensor_value_info(name, TensorProto.INT32, (BATCH,)) for name in lengths]
    graph = helper.make_graph(
        [helper.make_node("LSTM", ["x", "w", "r", "b", *lengths], ["y"], hidden_size=HIDDEN)],
        "g",
        inputs,
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (STEPS, 1, BATCH, HIDDEN))],
        weights,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, folder / "m.onnx")
    data: dict[str, Any] = {"x": draw.normal(size=(4, STEPS, BATCH, WIDTH)).astype(np.float32)}
    if has_lengths:
        data["lengths"] = draw.integers(1, STEPS + 1, (4, BATCH)).astype(np.int32)
    np.savez(folder / "d.npz", **data)


def compiled(capsys: Capsys, folder: Path) -> str:
    done = invoke(capsys, "compile", folder / "m.onnx", "--device", "npm4k", "--precision", "i8",
                  "--calibrate", folder / "d.npz", "-o", folder / "b")  # fmt: skip
    assert done.status == 0, done.text
    return done.out


@pytest.mark.heavy("compiles and times a recurrent network in two precisions, twice")
def test_a_plan_that_is_slower_on_integers_says_so(capsys: Capsys, tmp_path: Path) -> None:
    save_recurrent(tmp_path, has_lengths=True)
    said = compiled(capsys, tmp_path)
    found = re.search(r"note: i8 takes ([\d,]+) cycles, f16 would take ([\d,]+): (\d+)% of", said)
    assert found is not None, said
    ours = nacre.Bundle.load(tmp_path / "b").time().cycles
    floats = nacre.compile(tmp_path / "m.onnx", "npm4k").time().cycles
    assert [int(text.replace(",", "")) for text in found.groups()[:2]] == [ours, floats]
    assert floats < ours
    assert 50 < int(found[3]) <= 100
    assert "try `--precision f16`" in said


def test_a_plan_that_is_faster_on_integers_says_nothing(capsys: Capsys, tmp_path: Path) -> None:
    save_recurrent(tmp_path, has_lengths=False)
    assert "f16 would take" not in compiled(capsys, tmp_path)
    ours = nacre.Bundle.load(tmp_path / "b").time().cycles
    assert ours <= nacre.compile(tmp_path / "m.onnx", "npm4k").time().cycles

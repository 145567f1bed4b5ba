"""MACs of a model are one number, whichever verb tells it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from nacre.core.module import Module
from nacre.core.storage import save
from tests.cli.runner import invoke
from tests.compile.models import convolution_model, linear_model

pytestmark = pytest.mark.sampled(2)  # together they take long


def small() -> Module:
    return linear_model(8, 32, 16)


@pytest.mark.parametrize("make", [linear_model, convolution_model, small])
def test_verbs_agree(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, make: Callable[[], Module]
) -> None:
    model, bundle = tmp_path / "m.core", tmp_path / "b"
    save(make(), model)
    stats = json.loads(invoke(capsys, "core", "stats", model, "--format", "json").out)
    macs = stats["macs_total"]
    assert macs > 0
    compiled = invoke(capsys, "compile", model, "--device", "npm4k", "-o", bundle)
    assert f" {macs:,} MACs" in compiled.out
    as_json = ("--format", "json")
    estimated = json.loads(invoke(capsys, "estimate", model, "--device", "npm4k", *as_json).out)
    of_bundle = json.loads(invoke(capsys, "estimate", bundle, *as_json).out)
    assert estimated["npm4k"]["macs"] == of_bundle["npm4k"]["macs"] == macs
    timed = ("run", bundle, "--mode", "timed", "--no-values")
    assert json.loads(invoke(capsys, *timed, *as_json).out)["macs"] == macs
    assert f"the model: {macs:,} MACs" in invoke(capsys, *timed).out


# Weights by name, nodes, the shapes of input and output, and the MACs counted by hand.
CONV: dict[str, Any] = {"pads": [1, 1, 1, 1]}
Shape = tuple[int, ...]
Node = tuple[str, str, str, dict[str, Any]]
NETS: dict[str, tuple[dict[str, Shape], list[Node], Shape, Shape, int]] = {
    "grouped": ({"w": (8, 2, 3, 3)}, [("Conv", "x w", "y", {**CONV, "group": 2})],
                (1, 4, 8, 8), (1, 8, 8, 8), 8 * 64 * 2 * 9),
    "depthwise": ({"w": (4, 1, 3, 3)}, [("Conv", "x w", "y", {**CONV, "group": 4})],
                  (1, 4, 8, 8), (1, 4, 8, 8), 4 * 64 * 9),
    "transposed": ({"w": (4, 8, 2, 2)}, [("ConvTranspose", "x w", "y", {"strides": [2, 2]})],
                   (1, 4, 8, 8), (1, 8, 16, 16), 4 * 8 * 4 * 64),
    "with bias": ({"w": (32, 16), "b": (16,)}, [("Gemm", "x w b", "y", {})],
                  (4, 32), (4, 16), 4 * 32 * 16),
    "attention": ({}, [("Transpose", "x", "t", {"perm": [0, 2, 1]}), ("MatMul", "x t", "s", {}),
                       ("Softmax", "s", "p", {"axis": -1}), ("MatMul", "p x", "y", {})],
                  (2, 8, 16), (2, 8, 16), 2 * 2 * 8 * 8 * 16),
}  # fmt: skip


@pytest.mark.parametrize("name", NETS)
def test_macs_are_those_counted_by_hand(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    weights, nodes, given, result, macs = NETS[name]
    random = np.random.default_rng(0)
    graph = helper.make_graph(
        [helper.make_node(op, i.split(), [o], **a) for op, i, o, a in nodes],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, given)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, result)],
        [
            numpy_helper.from_array(random.standard_normal(shape).astype(np.float32), weight)
            for weight, shape in weights.items()
        ],
    )
    path = tmp_path / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    stats = json.loads(invoke(capsys, "core", "stats", path, "--format", "json").out)
    assert stats["macs_total"] == macs
    compiled = invoke(capsys, "compile", path, "--device", "npm4k", "-o", tmp_path / "b")
    assert f" {macs:,} MACs" in compiled.out
    estimated = invoke(capsys, "estimate", tmp_path / "b", "--format", "json").out
    assert json.loads(estimated)["npm4k"]["macs"] == macs

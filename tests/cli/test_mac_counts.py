"""MACs of a model are one number, whichever verb tells it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from nacre.core.module import Module
from nacre.core.storage import save
from tests.cli.runner import invoke
from tests.compile.models import convolution_model, linear_model


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

"""The example runs, and shows what it says."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from nacre.nac.operations import registry

EXAMPLE = Path(__file__).parents[3] / "examples/register_operation.py"


def test_the_example(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnx")
    monkeypatch.setattr(registry, "_registered", {})
    runpy.run_path(str(EXAMPLE))
    warned, refused, runs, now = capsys.readouterr().out.splitlines()
    assert warned.startswith("warning[NAC40]")
    assert "`com.acme::Gate`" in warned
    assert refused.startswith("refused: NAC71 - register one: `nacre.nac.register_operation(")
    assert runs == "runs: float32 (2, 3) as NumPy says: True"
    assert now == "findings now: []"

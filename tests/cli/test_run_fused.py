"""`nacre run --fuse`: chains, what they save, and what is said about other pairs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.runner import invoke
from tests.nem.plan.fusing_programs import GEMM, HEAD, RELU, STORE

Capsys = pytest.CaptureFixture[str]
CHAIN = HEAD + GEMM + RELU + STORE


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "chain.nem"
    path.write_text(CHAIN, encoding="utf-8")
    return str(path)


@pytest.fixture
def inputs(tmp_path: Path) -> list[str]:
    arguments = []
    for name, size in (("A_L1", 2048), ("B_L1", 4096)):
        path = tmp_path / f"{name}.npy"
        np.save(path, np.linspace(-1, 1, size, dtype=np.float16))
        arguments += ["--input", f"{name}={path}"]
    return arguments


def test_a_functional_run_says_what_was_fused(
    capsys: Capsys, program: str, inputs: list[str], tmp_path: Path
) -> None:
    plain, fused = tmp_path / "plain.bin", tmp_path / "fused.bin"
    assert invoke(capsys, "run", program, *inputs, "--output", f"Y_L2={plain}").status == 0
    outcome = invoke(capsys, "run", program, *inputs, "--fuse", "--output", f"Y_L2={fused}")
    assert outcome.status == 0
    assert outcome.out.endswith("fused 1 chain that runs 1 time\n")
    assert fused.read_bytes() == plain.read_bytes()


def test_an_output_is_written_and_said_to_be_why(
    capsys: Capsys, program: str, inputs: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "z.bin"
    outcome = invoke(capsys, "run", program, *inputs, "--fuse", "--output", f"Z_L1={path}")
    assert (
        "1          tR -> tS    16    the buffer is looked at after the run: `Z_L1`" in outcome.out
    )
    assert path.read_bytes()[:4096] != b"\xff" * 4096


def test_a_timed_run_has_both_times(capsys: Capsys, program: str) -> None:
    outcome = invoke(capsys, "run", program, "--mode", "timed", "--no-values", "--fuse")
    assert "fused: 1 chain that runs 1 time; 207 cycles become 135, 1.53x as fast" in outcome.out
    assert "tG -> tR -> tS  14-16  gemm + relu + store  1      207    135" in outcome.out


@pytest.mark.parametrize("options", [["--mode", "timed", "--no-values"], []])
def test_json_has_chains_and_pairs(
    capsys: Capsys, program: str, inputs: list[str], options: list[str]
) -> None:
    given = [] if options else inputs
    outcome = invoke(capsys, "run", program, *given, *options, "--fuse", "--format", "json")
    report = json.loads(outcome.out)
    assert report["status"] == "completed"
    (chain,) = report["fusion"]["chains"]
    assert chain["tasks"] == ["tG", "tR", "tS"]
    assert report["fusion"]["not_fused"] == []
    times = {"without": 207, "with": 135, "saved": 72} if options else None
    assert report["fusion"].get("cycles") == times


def test_without_the_option_nothing_is_said(capsys: Capsys, program: str) -> None:
    options = ["--mode", "timed", "--no-values", "--format", "json"]
    assert "fusion" not in json.loads(invoke(capsys, "run", program, *options).out)


def test_nothing_to_fuse_is_said_so(capsys: Capsys, tmp_path: Path) -> None:
    path = tmp_path / "plain.nem"
    path.write_text(HEAD + GEMM.replace("out Y", "out Y @materialized") + RELU, encoding="utf-8")
    outcome = invoke(capsys, "run", str(path), "--mode", "timed", "--no-values", "--fuse")
    assert "nothing is fused; the run takes 75 cycles" in outcome.out
    assert "1          tG -> tR    15    `@materialized` forbids it: on `Y`" in outcome.out


def test_errors_that_were_allowed_are_wrong_usage(capsys: Capsys, tmp_path: Path) -> None:
    path = tmp_path / "racy.nem"
    path.write_text(HEAD + GEMM + "tR = relu.async in Y out Z\n", encoding="utf-8")
    outcome = invoke(capsys, "run", str(path), "--allow", "HAZ", "--fuse")
    assert outcome.status == 2
    assert "--fuse needs a program without errors" in outcome.err

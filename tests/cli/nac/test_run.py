from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nacre.nac.format.file import write
from nacre.nac.format.values import Resource
from nacre.nac.program.assembly import Assembler
from tests.cli.runner import invoke
from tests.nac.files import FIXTURES, FOLDER, small

Capsys = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(small(), "small.nac")
    np.save("x.npy", np.array([[1, 2, 3], [-1, 0, 1]], np.float32))
    return tmp_path


def expected() -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.float32]], ...]:
    x = np.load("x.npy")
    y = np.maximum(
        x @ np.arange(6, dtype=np.float32).reshape(2, 3).T + np.array([0.5, -0.5], np.float32), 0
    )
    total = y.sum(axis=1, keepdims=True)
    return y + total, total


def test_a_file_is_run_and_outputs_are_printed(capsys: Capsys) -> None:
    outcome = invoke(capsys, "nac", "run", "small.nac", "--input", "x=x.npy")
    assert (outcome.status, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0] == "output 0: f32[2, 2]"
    assert "output 1: f32[2, 1]" in lines
    assert lines[-1].startswith("peak: ")


def test_outputs_are_written_by_number(capsys: Capsys) -> None:
    outcome = invoke(
        capsys, "nac", "run", "small.nac", "--input", "x=x.npy", "--output", "1=t.npy",
        "--output", "0=y.npy",
    )  # fmt: skip
    assert outcome.status == 0
    assert outcome.out.endswith("wrote t.npy\nwrote y.npy\n")
    y, total = expected()
    np.testing.assert_allclose(np.load("y.npy"), y)
    np.testing.assert_allclose(np.load("t.npy"), total)


def test_outputs_are_written_by_name(capsys: Capsys) -> None:
    build = Assembler()
    x = build.input("x")
    build.output(build.call("aten.relu.default", x), build.call("nac.neg", x))
    interface = {"inputs": {"x": {"dtype": "f32", "shape": [2, 3]}}, "outputs": ["up", "down"]}
    resource = Resource("nacre.interface.json", json.dumps(interface).encode())
    write(build.file(resources=[resource]), "named.nac")
    outcome = invoke(
        capsys, "nac", "run", "named.nac", "--input", "x=x.npy", "--output", "down=d.npy"
    )
    assert outcome.status == 0
    assert "output up: f32[2, 3]" in outcome.out
    np.testing.assert_array_equal(np.load("d.npy"), -np.load("x.npy"))
    outcome = invoke(
        capsys, "nac", "run", "named.nac", "--input", "x=x.npy", "--output", "dwn=d.npy"
    )
    assert outcome.status == 2
    assert "there is no output `dwn`: the program returns 2; did you mean `down`?" in outcome.err


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_fixtures_run_as_their_author_found(capsys: Capsys, path: Path) -> None:
    with np.load(path.with_suffix(".npz")) as known:
        name = next(key for key in known.files if "out" not in key)
        np.save("in.npy", known[name])
        wanted = known["torch_out"]
    given = "x" if path.name.startswith("cnn") else "input"
    outcome = invoke(
        capsys, "nac", "run", path, "--input", f"{given}=in.npy", "--output", "0=out.npy",
        "--format", "json",
    )  # fmt: skip
    assert (outcome.status, outcome.err) == (0, "")
    made = json.loads(outcome.out)
    assert made["outputs"][0]["shape"] == list(np.load("out.npy").shape)
    assert made["peak_bytes"] > 0
    np.testing.assert_allclose(np.load("out.npy"), wanted, atol=0.05)


def test_times_are_told(capsys: Capsys) -> None:
    outcome = invoke(capsys, "nac", "run", "small.nac", "--input", "x=x.npy", "--times")
    assert outcome.status == 0
    table = outcome.out.partition("operation")[2].splitlines()
    shown = [line.split()[0] for line in table[1:]]
    assert {"aten.linear.default", "aten.relu.default", "nac.add", "all"} <= set(shown)
    outcome = invoke(
        capsys, "nac", "run", "small.nac", "--input", "x=x.npy", "--times", "--format", "json"
    )
    times = json.loads(outcome.out)["times"]
    assert [t["instruction"] for t in times] == sorted(t["instruction"] for t in times)
    assert all(t["seconds"] >= 0 for t in times)


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        ((), 1, "error[NAC44]: instruction 0 at byte "),
        (("--input", "y=x.npy"), 1, "error[NAC45]"),
        (("--input", "x=none.npy"), 2, "nacre: none.npy does not exist"),
        (("--input", "x=small.nac"), 1, "is no .npy file"),
        (("--input", "x"), 2, "does not have the form NAME=FILE.npy"),
        (("--input", "x=x.npy", "--input", "x=x.npy"), 2, "input `x` is given twice"),
        (("--input", "x=x.npy", "--output", "2=o.npy"), 2, "there is no output `2`"),
        (("--input", "x=x.npy", "--output", "0=none/o.npy"), 2, "none is no folder"),
        (("--input", "x=wrong.npy"), 1, "error[NAC4"),
    ],
)
def test_what_is_wrong_is_told(
    capsys: Capsys, arguments: tuple[str, ...], status: int, told: str
) -> None:
    np.save("wrong.npy", np.ones((2, 5), np.float32))
    outcome = invoke(capsys, "nac", "run", "small.nac", *arguments)
    assert (outcome.status, outcome.out) == (status, "")
    assert told in outcome.err


def test_an_unknown_operation_is_refused_with_its_name(capsys: Capsys) -> None:
    build = Assembler()
    build.output(build.call("aten.frobnicate.default", build.input("x")))
    write(build.file(), "odd.nac")
    outcome = invoke(capsys, "nac", "run", "odd.nac", "--input", "x=x.npy")
    assert outcome.status == 1
    assert "error[NAC71]" in outcome.err
    assert "aten.frobnicate.default" in outcome.err
    assert FOLDER.exists()

"""`nacre nac info`, `verify`, `dis` and `diff`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from nacre.cli.nac.command import nac
from nacre.nac import load, read, save, to_bytes
from nacre.nac.format.file import write
from nacre.nac.format.values import Plan
from nacre.nac.mep import assemble
from nacre.nac.mep.program import read as read_plan
from tests.cli.runner import invoke, nacre
from tests.nac.files import FIXTURES, FOLDER, changed, headed, small

Capsys = pytest.CaptureFixture[str]
MLP = FOLDER / "mlp.none.v16.nac"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(small(), "small.nac")
    (tmp_path / "cut.nac").write_bytes(MLP.read_bytes()[:200])
    return tmp_path


def test_help_names_every_verb(capsys: Capsys) -> None:
    outcome = invoke(capsys, "nac", "--help")
    assert outcome.status == 0
    listed = outcome.out.partition("Commands:")[2].splitlines()
    assert sorted(nac.commands) == [line.split()[0] for line in listed if line[2:3].strip()]
    for verb in nac.commands:
        assert invoke(capsys, "nac", verb, "--help").status == 0


def test_the_verbs_load_nothing_heavy() -> None:
    heavy = "[m for m in ('numpy', 'torch', 'onnx') if m in sys.modules]"
    code = f"import sys, nacre.cli.nac.command; print({heavy})"
    outcome = nacre(command=("-c", code))
    assert (outcome.status, outcome.out.strip()) == (0, "[]")


# Info


def test_info_says_what_is_in_a_file(capsys: Capsys) -> None:
    outcome = invoke(capsys, "nac", "info", "small.nac")
    assert (outcome.status, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    size = Path("small.nac").stat().st_size
    assert lines[0] == f"small.nac: NAC v1.6, {size:,} bytes"
    assert lines[1] == "8 instructions, 1 input, 2 outputs"
    assert lines[2] == "weights: internal, 2 tensors, 32 bytes, quantisation none"
    assert lines[3] == "memory schedule: 1 FORWARD, 4 FREE, 2 PRELOAD, 1 SAVE_RESULT"
    assert "MMAP" in outcome.out
    assert "x      the file does not say" in outcome.out
    assert " 1  layer.weight  [2, 3]  f32[2, 3]  none             24" in lines


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_info_as_json(capsys: Capsys, path: Path) -> None:
    outcome = invoke(capsys, "nac", "info", path, "--format", "json")
    made = json.loads(outcome.out)
    file = read(path)
    assert made["instructions"] == len(file.instructions)
    assert [p["name"] for p in made["parameters"]] == [n.text for n in file.data.parameters]
    assert [s["tag"] for s in made["sections"]] == [tag.strip() for tag in file.sections]
    starts = {s["tag"]: s["offset"] for s in made["sections"]}
    raw = path.read_bytes()
    assert all(raw[at : at + 4].decode().strip() == tag for tag, at in starts.items())


def test_info_of_external_weights(capsys: Capsys) -> None:
    save(load(FOLDER / "mlp.BLOCK_FP8.v16.nac"), "e.nac", "external")
    outcome = invoke(capsys, "nac", "info", "e.nac")
    assert "weights: external, 6 tensors, 91,0" not in outcome.out
    assert "[10, 256]   i8[2560]   BLOCK_FP8" in outcome.out
    Path("e.safetensors").unlink()
    outcome = invoke(capsys, "nac", "info", "e.nac")
    assert outcome.status == 0
    assert "weights: external, 6 tensors, 0 bytes" in outcome.out


@pytest.mark.parametrize("verb", ["info", "dis", "run", "extract", "genome"])
def test_a_broken_file_is_told_with_its_place(capsys: Capsys, verb: str) -> None:
    more = ("-o", "x") if verb == "extract" else ()
    outcome = invoke(capsys, "nac", verb, "cut.nac", *more)
    assert (outcome.status, outcome.out) == (1, "")
    assert "error[NAC" in outcome.err
    assert "--> cut.nac" in outcome.err
    outcome = invoke(capsys, "nac", verb, "cut.nac", *more, "--format", "json")
    found = json.loads(outcome.out)["diagnostics"]
    assert outcome.status == 1
    assert all(f["code"].startswith("NAC") and f["line"] == 1 for f in found)
    assert sorted(p.name for p in Path().iterdir()) == ["cut.nac", "small.nac"]


@pytest.mark.parametrize("verb", ["info", "dis", "run", "verify", "genome"])
def test_a_file_that_is_not_there_is_wrong_usage(capsys: Capsys, verb: str) -> None:
    outcome = invoke(capsys, "nac", verb, "none.nac")
    assert (outcome.status, outcome.err) == (2, "nacre: none.nac does not exist\n")


# Verify


def test_sound_files_are_verified(capsys: Capsys) -> None:
    outcome = invoke(capsys, "nac", "verify", *FIXTURES)
    assert (outcome.status, outcome.out) == (0, f"verified {len(FIXTURES)} files: no problems\n")


def test_every_broken_promise_is_reported(capsys: Capsys) -> None:
    file = headed(small(), inputs=3, outputs=2)
    write(changed(file, CNST=()), "wrong.nac")
    outcome = invoke(capsys, "nac", "verify", "wrong.nac", "small.nac")
    assert outcome.status == 1
    assert outcome.out.count("error[NAC") >= 2
    assert "verified 2 files: " in outcome.out
    outcome = invoke(capsys, "nac", "verify", "wrong.nac", "--format", "json")
    found = json.loads(outcome.out)["diagnostics"]
    assert outcome.status == 1
    assert all(f["column"] >= 1 and f["file"] == "wrong.nac" for f in found)


def test_one_missing_file_does_not_hide_the_others(capsys: Capsys) -> None:
    outcome = invoke(capsys, "nac", "verify", "none.nac", "cut.nac")
    assert outcome.status == 2
    assert "none.nac does not exist" in outcome.err
    assert "error[NAC" in outcome.out


# Disassembly


def test_dis_prints_a_line_an_instruction(capsys: Capsys) -> None:
    outcome = invoke(capsys, "nac", "dis", "small.nac")
    assert outcome.status == 0
    assert outcome.out.splitlines()[4] == "v4 = aten.relu.default(v3)"
    outcome = invoke(capsys, "nac", "dis", "--mmap", "small.nac")
    lines = outcome.out.splitlines()
    assert lines[3].endswith("   FREE -> 0,  FREE -> 1,  FREE -> 2,  FORWARD -> 4")
    assert lines[7] == "return v6, v5"


def test_dis_as_json(capsys: Capsys) -> None:
    outcome = invoke(capsys, "nac", "dis", "small.nac", "--format", "json")
    rows = json.loads(outcome.out)["instructions"]
    assert rows[5]["operation"] == "aten.sum.dim_IntList"
    assert rows[5]["arguments"] == ["v4", "[1]", "True", "None"]
    assert rows[6]["mmap"] == [["FREE", 4]]


def test_dis_shows_the_plan_of_a_file(capsys: Capsys) -> None:
    """Behind the program, as a text that gives the same bytes."""
    text = '.const 7 = "a\\u001b[31mb"\nsrc_constant %said, 7\nagain: branch_if %said, again\n'
    plan = read_plan(assemble(text))
    write(changed(small(), ORCH=plan), "plan.nac")
    outcome = invoke(capsys, "nac", "dis", "plan.nac")
    assert outcome.status == 0
    assert "\x1b" not in outcome.out
    program, _, shown = outcome.out.partition("\n\n; plan\n")
    assert f"{program}\n" == invoke(capsys, "nac", "dis", "small.nac").out
    assert read_plan(assemble(shown)) == plan
    outcome = invoke(capsys, "nac", "dis", "plan.nac", "--format", "json")
    assert json.loads(outcome.out)["plan"] == shown
    outcome = invoke(capsys, "nac", "dis", "small.nac", "--format", "json")
    assert json.loads(outcome.out)["plan"] is None


def test_dis_of_a_plan_that_is_wrong_has_the_program(capsys: Capsys) -> None:
    write(changed(small(), ORCH=Plan(b"\x03")), "wrong.nac")
    outcome = invoke(capsys, "nac", "dis", "wrong.nac")
    assert outcome.status == 1
    assert outcome.out == invoke(capsys, "nac", "dis", "small.nac").out
    assert "error[NAC82]" in outcome.err


def test_names_cannot_drive_the_terminal(capsys: Capsys) -> None:
    file = small()
    data = file.data
    named = tuple(type(n)(n.id, "\x1b[31m" + n.text) for n in data.inputs)
    evil = changed(file, DATA=type(data)(data.parameters, named, data.tensors))
    Path("evil.nac").write_bytes(to_bytes(evil))
    for verb in ("dis", "info"):
        outcome = invoke(capsys, "nac", verb, "evil.nac")
        assert outcome.status == 0
        assert "\x1b" not in outcome.text
        assert "[31mx" in outcome.out


# Differences


def test_diff_says_whether_files_differ(capsys: Capsys) -> None:
    outcome = invoke(capsys, "nac", "diff", "small.nac", "small.nac")
    assert (outcome.status, outcome.out) == (0, "no difference\n")
    write(changed(small(), MMAP=()), "other.nac")
    outcome = invoke(capsys, "nac", "diff", "small.nac", "other.nac")
    assert outcome.status == 1
    assert outcome.out == "schedule: 1 difference\n  ! the schedules of memory differ\n"


def test_diff_as_json_and_with_a_tolerance(capsys: Capsys) -> None:
    other = FOLDER / "mlp.FP16.v16.nac"
    outcome = invoke(capsys, "nac", "diff", MLP, other, "--format", "json")
    made = json.loads(outcome.out)
    assert (outcome.status, made["same"]) == (1, False)
    distances = [r["max_difference"] for r in made["differences"] if r["part"] == "weights"]
    assert len(distances) == 6
    halves, wholes = load(other).weights, load(MLP).weights
    expected = [float(np.abs(halves[i].astype(np.float64) - wholes[i]).max()) for i in halves.names]
    assert distances == expected


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "-inf", "1e999", "x"])
def test_a_tolerance_is_a_number_of_0_or_more(capsys: Capsys, text: str) -> None:
    outcome = invoke(capsys, "nac", "diff", MLP, MLP, "--tolerance", text)
    assert (outcome.status, outcome.out) == (2, "")
    assert f"`{text}` is no number of 0 or more" in outcome.err


def test_bytes_count_where_nothing_is_tolerated(capsys: Capsys) -> None:
    data = small().data
    zeros = [np.zeros(t.shape, np.float32) for t in data.tensors]
    for name, sign in (("plus.nac", 1), ("minus.nac", -1)):
        tensors = tuple(
            replace(t, data=(sign * z).tobytes()) for t, z in zip(data.tensors, zeros, strict=True)
        )
        write(changed(small(), DATA=type(data)(data.parameters, data.inputs, tensors)), name)
    outcome = invoke(capsys, "nac", "diff", "plus.nac", "minus.nac")
    assert outcome.status == 1
    assert "bytes differ, and elements are equal as numbers" in outcome.out
    outcome = invoke(capsys, "nac", "diff", "plus.nac", "minus.nac", "--tolerance", "1e-30")
    assert (outcome.status, outcome.out) == (0, "no difference\n")


@pytest.mark.parametrize("names", [("cut.nac", "small.nac"), ("small.nac", "cut.nac")])
def test_a_broken_side_is_told(capsys: Capsys, names: tuple[str, str]) -> None:
    outcome = invoke(capsys, "nac", "diff", *names)
    assert (outcome.status, outcome.out) == (1, "")
    assert "--> cut.nac" in outcome.err

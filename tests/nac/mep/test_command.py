"""Files that carry a plan: built, verified and run by the command."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from nacre import core
from nacre.nac.format.file import read, to_bytes
from nacre.nac.format.values import Plan
from nacre.nac.verify import verify
from tests.cli.runner import Outcome, invoke
from tests.nac.files import changed
from tests.nac.mep.carrying import successor, tokenizer_json

Capsys = pytest.CaptureFixture[str]
ANSWERS = ("text=abc", "tokens=3", "window=8", "end=-1")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("tokenizer.json").write_text(tokenizer_json())
    core.save(successor(), "m.core")
    made = invoke(
        capsys, "nac", "build", "m.core", "-o", "m.nac", "--tokenizer", "tokenizer.json",
        "--plan", "greedy",
    )  # fmt: skip
    assert (made.status, made.err) == (0, "")
    return tmp_path


def _run(capsys: Capsys, *more: str, answers: tuple[str, ...] = ANSWERS) -> Outcome:
    flags = [part for answer in answers for part in ("--answer", answer)]
    return invoke(capsys, "nac", "run", "m.nac", *flags, *more)


def test_a_plan_is_run(capsys: Capsys) -> None:
    assert invoke(capsys, "nac", "verify", "m.nac").status == 0
    outcome = _run(capsys)
    assert (outcome.status, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[:2] == ["output 0: text", "abcdef"]
    assert lines[2:4] == ["output 1: i64[1, 6]", "[[ 1 10 11 12 13 14]]"]
    assert lines[4].startswith("steps: ")


def test_prompts_are_listed(capsys: Capsys) -> None:
    told = invoke(capsys, "nac", "info", "m.nac").out
    rows = [line.split() for line in told.partition("prompt of the plan")[2].splitlines()[1:6]]
    assert rows[:4] == [["text", "str"], ["tokens", "int"], ["window", "int"], ["end", "int"]]
    assert rows[4] == ["text", "that", "is", "not", "empty", "str"]
    as_json = json.loads(invoke(capsys, "nac", "info", "m.nac", "--format", "json").out)
    assert [row["text"] for row in as_json["prompts"]] == [
        "text", "tokens", "window", "end", "text that is not empty",
    ]  # fmt: skip


@pytest.mark.parametrize("given", [(), ANSWERS[:1], ANSWERS[2:3]])
def test_answers_that_are_missing_are_told_all_at_once(
    given: tuple[str, ...], capsys: Capsys
) -> None:
    outcome = _run(capsys, "--plan", "--format", "json", answers=given)
    assert outcome.status == 1
    told = [found["message"] for found in json.loads(outcome.out)["diagnostics"]]
    missing = [one.partition("=")[0] for one in ANSWERS if one not in given]
    assert len(told) == len(missing)
    for name, message in zip(missing, told, strict=True):
        assert f"no answer to `{name}`" in message


def test_outputs_of_a_plan_are_written_and_told(capsys: Capsys) -> None:
    outcome = _run(
        capsys, "--output", "0=t.txt", "--output", "1=i.npy", "--seed", "5", "--format", "json"
    )
    assert outcome.status == 0
    told = json.loads(outcome.out)
    assert told["outputs"][0] == {"type": "text", "value": "abcdef"}
    assert told["outputs"][1]["values"] == [[1, 10, 11, 12, 13, 14]]
    assert told["steps"] > 300
    assert Path("t.txt").read_text() == "abcdef"
    assert np.load("i.npy").tolist() == [[1, 10, 11, 12, 13, 14]]


def test_the_program_is_run_where_that_is_asked_for(capsys: Capsys) -> None:
    np.save("ids.npy", np.arange(1, 9)[None])
    for flags in (("--input", "ids=ids.npy"), ("--no-plan", "--input", "ids=ids.npy")):
        outcome = invoke(capsys, "nac", "run", "m.nac", *flags)
        assert outcome.out.startswith("output 0: f32[1, 8, 17]"), outcome
    assert "NAC44" in invoke(capsys, "nac", "run", "m.nac", "--no-plan").err
    assert "NAC44" in invoke(capsys, "nac", "run", "m.nac", "--times").err


@pytest.mark.parametrize(
    ("answers", "flags", "status", "said"),
    [
        (ANSWERS[1:], (), 1, "NAC96"),
        (("text=", *ANSWERS[1:]), (), 1, "no answer to `text that is not empty`"),
        ((*ANSWERS, "txt=a"), (), 1, "did you mean `text`"),
        (("text=abc", "tokens=x", *ANSWERS[2:]), (), 1, "NAC96"),
        (ANSWERS, ("--steps", "50"), 1, "NAC88"),
        ((*ANSWERS, "text=b"), (), 2, "`text` is given twice"),
        (ANSWERS, ("--root", "nowhere"), 2, "nowhere is no folder"),
        (ANSWERS, ("--times",), 2, "--times is for the program"),
        (ANSWERS, ("--no-plan",), 2, "are for a plan"),
        (ANSWERS, ("--answer", "x"), 2, "PROMPT=TEXT"),
        (ANSWERS, ("--output", "9=o.npy"), 2, "there is no output 9"),
        (ANSWERS, ("--output", "text=o.npy"), 2, "have numbers"),
    ],
)
def test_a_plan_that_cannot_be_run(
    answers: tuple[str, ...], flags: tuple[str, ...], status: int, said: str, capsys: Capsys
) -> None:
    outcome = _run(capsys, *flags, answers=answers)
    assert outcome.status == status, outcome
    assert said in outcome.err
    assert not Path("o.npy").exists()


def test_what_a_plan_writes_is_shown_even_if_it_fails(capsys: Capsys) -> None:
    Path("p.mep").write_text(
        'src_constant %a, "one\\n\\u001b[2J"\n'
        "io_write %a, stdout, %a, write\nio_write %a, stderr, %a, write\n"
        "io_write %a, file, %a, write\n"
    )
    build = ("nac", "build", "m.core", "-o", "p.nac", "--plan", "p.mep")
    assert invoke(capsys, *build).status == 0
    outcome = invoke(capsys, "nac", "run", "p.nac")
    assert outcome.status == 1
    assert outcome.out.startswith("one\n")
    assert "\x1b" not in outcome.text
    assert "NAC94" in outcome.err
    assert "--write" in outcome.err


def test_a_file_without_a_plan(capsys: Capsys) -> None:
    assert invoke(capsys, "nac", "build", "m.core", "-o", "n.nac").status == 0
    outcome = invoke(capsys, "nac", "run", "n.nac", "--plan")
    assert (outcome.status, outcome.out) == (2, "")
    assert "n.nac has no plan" in outcome.err
    outcome = invoke(capsys, "nac", "build", "m.core", "-o", "n.nac", "--plan", "beam")
    assert outcome.status == 2
    assert "beam does not exist, and is none of the plans cached, classify" in outcome.err
    Path("bad.mep").write_text("jump nowhere\n")
    outcome = invoke(capsys, "nac", "build", "m.core", "-o", "k.nac", "--plan", "bad.mep")
    assert outcome.status == 1
    assert "NAC80" in outcome.err
    assert not Path("k.nac").exists()


def test_a_plan_and_a_tokenizer_that_are_wrong_are_found_where_they_stand() -> None:
    raw = Path("m.nac").read_bytes()
    file = read(raw)
    start = raw.index(b"ORCH", 88)
    assert verify(raw) == []
    bad = Plan(b"\x03" + file.plan.bytecode, file.plan.constants)
    (found,) = verify(to_bytes(changed(file, ORCH=bad)))
    assert (found.code, found.location.column) == ("NAC82", start + 13)
    jump = Plan(file.plan.bytecode + b"\xa8\x00\x10\x00", file.plan.constants)
    assert [d.code for d in verify(to_bytes(changed(file, ORCH=jump)))] == ["NAC85"]
    lost = Plan(file.plan.bytecode, file.plan.constants[1:])
    assert {d.code for d in verify(to_bytes(changed(file, ORCH=lost)))} == {"NAC86"}
    manifest = file.sections["PROC"]
    at = raw.index(b"PROC", 88)
    (found,) = verify(to_bytes(changed(file, PROC=manifest[:5] + b"\x99" + manifest[6:])))
    assert (found.code, found.location.column) == ("NAC61", at + 8 + 5 + 1)
    (found,) = verify(to_bytes(changed(file, PROC=manifest[:5])))
    assert found.code == "NAC64"
    (found,) = verify(raw.replace(struct.pack("<if", 3, 0.0), struct.pack("<if", 4, 0.0), 1))
    assert found.code == "NAC65"

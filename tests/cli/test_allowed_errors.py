"""Errors that are allowed through: a program runs, or stops with a finding; it never crashes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nacre.nem.run.machine.actions import ByteCopy
from tests.cli.runner import Outcome, invoke

pytestmark = pytest.mark.sampled(2)  # together they take long

_CASES = Path(__file__).parents[1] / "conformance" / "cases"
_ERROR = re.compile(r"error\[([A-Z]+\d+)\]")
_VERBS = (
    ("check",),
    ("run",),
    ("run", "--mode", "timed"),
    ("run", "--mode", "timed", "--no-values"),
    ("debug", "--batch", "--command", "step", "--command", "run", "--command", "buffers"),
)


def _wrong_programs() -> list[tuple[Path, list[str]]]:
    """Every conformance case with errors, and the codes that its comments name."""
    found = []
    for path in sorted(_CASES.iterdir()):
        file = path / "main.nem" if path.is_dir() else path
        codes = sorted(set(_ERROR.findall(file.read_text(errors="replace"))))
        if codes and file.suffix == ".nem":
            found.append((file, codes))
    return found


def _assert_no_crash(
    capsys: pytest.CaptureFixture[str], file: Path, codes: list[str]
) -> list[Outcome]:
    allow = [option for code in codes for option in ("--allow", code)]
    outcomes = [invoke(capsys, *verb, file, *allow) for verb in _VERBS]
    for verb, outcome in zip(_VERBS, outcomes, strict=True):
        assert outcome.status in (0, 1), (file.name, verb, outcome.text)
        if outcome.status == 1 and verb[0] == "run":
            assert "error[" in outcome.out, (file.name, verb)
    return outcomes


_ONE_OF_A_GROUP = {codes[0][:3]: (file, codes) for file, codes in _wrong_programs()}


@pytest.mark.parametrize("group", _ONE_OF_A_GROUP)
def test_an_error_of_every_group_can_be_allowed(
    capsys: pytest.CaptureFixture[str], group: str
) -> None:
    _assert_no_crash(capsys, *_ONE_OF_A_GROUP[group])


@pytest.mark.full
def test_every_error_can_be_allowed(capsys: pytest.CaptureFixture[str]) -> None:
    programs = _wrong_programs()
    assert len(programs) > 200
    for file, codes in programs:
        _assert_no_crash(capsys, file, codes)


_UNSOUND_BUFFERS = {
    "size 0": "buffer A : L2 (size=0)\nbuffer B : L2 (size=64)\n",
    "a negative size": "buffer A : L2 (size=0-64)\nbuffer B : L2 (size=64)\n",
    "align 0": "buffer A : L2 (size=64)\nbuffer B : L2 (size=64, align=0)\n",
    "no home": "buffer A : L1[7] (size=64)\nbuffer B : L2 (size=64)\n",
    "more than there is": "buffer A : L2 (size=1000000000000)\nbuffer B : L2 (size=64)\n",
}


@pytest.mark.parametrize("kind", _UNSOUND_BUFFERS)
@pytest.mark.parametrize("with_task", [False, True])
def test_unsound_buffers_that_are_allowed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, kind: str, with_task: bool
) -> None:
    task = "t = transfer.sync(dst=region(B, 0, 64), src=region(A, 0, 64))\n" if with_task else ""
    file = tmp_path / "p.nem"
    file.write_text(_UNSOUND_BUFFERS[kind] + task)
    _assert_no_crash(capsys, file, ["BUF", "EXT", "PLC", "INI"])


def test_what_was_allowed_and_cannot_run_is_a_finding_at_the_task(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "p.nem"
    file.write_text(
        "buffer A : L2 (size=64)\nbuffer B : L2 (size=64)\n"
        "s = transfer.sync(dst=region(A, 0, 64), src=region(B, 0, 64))\n"
        "t = transfer.sync(dst=region(B, 32, 64), src=region(A, 32, 64))\n"
    )
    outcome = invoke(capsys, "run", file, "--allow", "EXT01")
    assert outcome.status == 1
    assert "error[RUN12]: `transfer` cannot run: bytes 32..95 lie outside `A`" in outcome.out
    assert f"{file}:4:5" in outcome.out
    assert "EXT01" in outcome.out


def test_a_timed_run_of_a_program_without_tasks(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "p.nem"
    for text in ("buffer A : L2 (size=64)\n", "program empty:\n", "const N = 4\n"):
        file.write_text(text)
        for extra in (
            (),
            ("--no-values",),
            ("--format", "json"),
            ("--report", tmp_path / "r.html"),
            ("--trace", tmp_path / "t.csv"),
            ("--what-if", "NMU.int8_macs=1"),
        ):
            outcome = invoke(capsys, "run", file, "--mode", "timed", *extra)
            assert outcome.status == 0, (text, extra, outcome.text)
        assert invoke(capsys, "run", file).status == 0
        assert invoke(capsys, "debug", file, "--batch", "--command", "run").status == 0


def _out_of_memory(*_: object, **__: object) -> bool:
    raise MemoryError("Unable to allocate 7.45 GiB for an array")


def test_a_task_without_memory_is_a_finding_that_says_how_much(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "p.nem"
    file.write_text(
        "buffer A : DDR (size=64)\nbuffer B : L2 (size=64)\n"
        "t = transfer.sync(dst=region(B, 0, 64), src=region(A, 0, 64))\n"
    )
    monkeypatch.setattr(ByteCopy, "run", _out_of_memory)
    for verb in (("run",), ("run", "--mode", "timed"), ("debug", "--batch", "--command", "run")):
        outcome = invoke(capsys, *verb, file)
        assert outcome.status == 1
        assert "error[RUN06]: `t` needs more memory" in outcome.out
        assert "128 bytes" in outcome.out
        assert "7.45 GiB" in outcome.out


def test_running_out_of_memory_elsewhere_is_no_bug_of_ours(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "p.nem"
    file.write_text("buffer A : DDR (size=64)\n")
    monkeypatch.setattr("nacre.cli.check.check_source", _out_of_memory)
    outcome = invoke(capsys, "check", file)
    assert outcome.status == 1
    assert "error[RUN06]: check needs more memory than this machine gives" in outcome.err
    assert "7.45 GiB" in outcome.err
    assert "bug" not in outcome.err

"""`nacre check --fix` as users meet it."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest

from tests.cli.runner import invoke

Capsys = pytest.CaptureFixture[str]

BAD = "const N : i32 = 4\nbuffer A : l2 (size=64)\n"
GOOD = "const N = 4\nbuffer A : L2 (size=64)\n"


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "f.nem"
    path.write_text(BAD, encoding="utf-8")
    return path


def test_a_file_is_mended_and_each_remedy_is_named(capsys: Capsys, bad: Path) -> None:
    outcome = invoke(capsys, "check", "--fix", bad)
    assert outcome.status == 0
    assert outcome.out == (
        f"fixed {bad}:1:9: CST14: take `: i32` out\n"
        f"fixed {bad}:2:12: DOC13: write `L2`\n"
        "checked 1 file: no problems; 2 fixed\n"
    )
    assert bad.read_text(encoding="utf-8") == GOOD


def test_a_clean_file_is_not_written(capsys: Capsys, bad: Path) -> None:
    bad.write_text(GOOD, encoding="utf-8")
    before = bad.stat()
    outcome = invoke(capsys, "check", "--fix", bad)
    assert (outcome.status, outcome.out) == (0, "checked 1 file: no problems; 0 fixed\n")
    assert (bad.stat().st_mtime_ns, bad.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_diff_shows_a_patch_and_writes_nothing(capsys: Capsys, bad: Path) -> None:
    outcome = invoke(capsys, "check", "--fix", "--diff", bad)
    assert outcome.status == 1
    assert outcome.out.startswith(f"--- {bad}\n+++ {bad}\n@@ -1,2 +1,2 @@\n-const N : i32 = 4\n")
    assert bad.read_text(encoding="utf-8") == BAD
    bad.write_text(GOOD, encoding="utf-8")
    assert invoke(capsys, "check", "--fix", "--diff", bad).out == ""


def test_standard_input_is_fixed_to_standard_output(
    capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    outcome = invoke(capsys, "check", "--fix", "-")
    assert (outcome.status, outcome.out) == (0, GOOD)
    assert "fixed <stdin>:1:9: CST14" in outcome.err
    assert outcome.err.endswith("checked 1 file: no problems; 2 fixed\n")


def test_what_is_left_decides_the_status(capsys: Capsys, bad: Path) -> None:
    bad.write_text(f"{BAD}buffer B : L2 (size=0)\n", encoding="utf-8")
    outcome = invoke(capsys, "check", "--fix", bad)
    assert outcome.status == 1
    assert "error[BUF01]" in outcome.out
    assert outcome.out.endswith("checked 1 file: 1 error; 2 fixed\n")


def test_what_is_refused_says_why(capsys: Capsys, bad: Path) -> None:
    text = "buffer A : L2 (size=64)\nt = transfer.sync(dst=region(A, 0, 8), src=region(A, 8, 8))\n"
    bad.write_text(f"{text}w = wait(t)\nwait(w)\n", encoding="utf-8")
    outcome = invoke(capsys, "check", "--fix", bad)
    assert f"not fixed {bad}:3:1: SIG20" in outcome.out
    assert "it would bring up" in outcome.out
    assert "error[NAM01]" in outcome.out


def test_json_and_sarif_carry_fixes(capsys: Capsys, bad: Path) -> None:
    found = json.loads(invoke(capsys, "check", "--format", "json", bad).out)["diagnostics"]
    assert found[0]["fix"]["description"] == "take `: i32` out"
    assert found[0]["fix"]["edits"] == [
        {
            "file": str(bad),
            "line": 1,
            "column": 8,
            "end_line": 1,
            "end_column": 14,
            "replacement": "",
        }
    ]
    run = json.loads(invoke(capsys, "check", "--format", "sarif", bad).out)["runs"][0]
    (fix,) = run["results"][1]["fixes"]
    (change,) = fix["artifactChanges"]
    region = {"startLine": 2, "startColumn": 12, "endLine": 2, "endColumn": 14}
    assert (
        change["artifactLocation"]
        == run["results"][1]["locations"][0]["physicalLocation"]["artifactLocation"]
    )
    assert change["replacements"] == [{"deletedRegion": region, "insertedContent": {"text": "L2"}}]
    after = json.loads(invoke(capsys, "check", "--fix", "--format", "json", bad).out)
    assert after["diagnostics"] == []
    assert [d["code"] for d in after["fixed"]] == ["CST14", "DOC13"]


def test_files_that_include_each_other_are_checked_as_they_are_in_the_end(
    capsys: Capsys, tmp_path: Path
) -> None:
    part, main = tmp_path / "part.nem", tmp_path / "main.nem"
    part.write_text(
        'include "npm_lite.nem"\ndevice d extends npm_lite {\n    spec_version = "NEM-1.0"\n}\n',
        encoding="utf-8",
    )
    main.write_text('include "part.nem"\ndevice d\nconst N : i32 = 4\n', encoding="utf-8")
    alone = part.read_bytes()
    assert invoke(capsys, "check", "--fix", main).status == 1
    assert part.read_bytes() == alone
    assert invoke(capsys, "check", "--fix", main, part).status == 0


def test_the_program_of_a_bundle_is_never_rewritten(capsys: Capsys, tmp_path: Path) -> None:
    (tmp_path / "model.nem").write_text(BAD, encoding="utf-8")
    marks = {"format": 1, "nacre": "0", "device": "npm_lite", "sha256": {}}
    (tmp_path / "manifest.json").write_text(json.dumps(marks), encoding="utf-8")
    for name in (tmp_path, tmp_path / "model.nem"):
        outcome = invoke(capsys, "check", "--fix", name)
        assert outcome.status == 1
        assert "is the program of a bundle" in outcome.err
        assert (tmp_path / "model.nem").read_text(encoding="utf-8") == BAD


def test_a_byte_order_mark_and_permissions_stay(capsys: Capsys, bad: Path) -> None:
    bad.write_bytes(b"\xef\xbb\xbf" + BAD.encode())
    bad.chmod(0o640)
    assert invoke(capsys, "check", "--fix", bad).status == 0
    assert bad.read_bytes() == b"\xef\xbb\xbf" + GOOD.encode()
    assert bad.stat().st_mode & 0o777 == 0o640


def test_a_write_that_fails_leaves_the_file_and_is_said(
    capsys: Capsys, bad: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("nacre.base.files.os.replace", refuse)
    outcome = invoke(capsys, "check", "--fix", bad)
    assert outcome.status == 1
    assert f"cannot write {bad}: No space left" in outcome.err
    assert "error[CST14]" in outcome.out
    assert bad.read_text(encoding="utf-8") == BAD
    assert [path.name for path in bad.parent.iterdir()] == ["f.nem"]


@pytest.mark.parametrize(
    "options", [["--diff"], ["--fix", "--diff", "--format", "json"], ["--fix", "--format", "sarif"]]
)
def test_options_that_make_no_sense_together_are_refused(
    capsys: Capsys, options: list[str]
) -> None:
    assert invoke(capsys, "check", *options, "-").status == 2


def test_a_rule_page_says_that_it_is_fixable(capsys: Capsys) -> None:
    page = invoke(capsys, "rule", "DOC21").out
    assert "fixable: `nacre check --fix` writes `in` and `out`\n" in page
    assert "fixable" not in invoke(capsys, "rule", "BUF03").out

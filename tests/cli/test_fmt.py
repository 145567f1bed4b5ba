from __future__ import annotations

import os
import resource
import stat
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from tests.cli.runner import invoke, nacre, nacre_here, without_privileges

Capsys = pytest.CaptureFixture[str]

UGLY = "# kept\nbuffer   A:L2(align=64,size=4*16)   # also kept\n\n\n\nconst  X=1;const Y=X\n"
PRETTY = "# kept\nbuffer A : L2 (size=4 * 16, align=64)  # also kept\n\nconst X = 1\nconst Y = X\n"
BROKEN = "buffer A L2 (size=4)\nconst  X=1\n"


@pytest.fixture
def ugly(tmp_path: Path) -> Path:
    path = tmp_path / "f.nem"
    path.write_text(UGLY, encoding="utf-8")
    return path


def test_a_file_is_rewritten_in_canonical_form(ugly: Path) -> None:
    outcome = nacre("fmt", ugly)
    assert (outcome.status, outcome.out, outcome.err) == (0, f"reformatted {ugly}\n", "")
    assert ugly.read_text(encoding="utf-8") == PRETTY


def test_a_formatted_file_is_left_alone(capsys: Capsys, ugly: Path) -> None:
    ugly.write_text(PRETTY, encoding="utf-8")
    before = ugly.stat()
    outcome = invoke(capsys, "fmt", ugly)
    assert (outcome.status, outcome.text) == (0, "")
    assert (ugly.stat().st_mtime_ns, ugly.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_check_changes_nothing_and_has_status_1(ugly: Path) -> None:
    outcome = nacre_here("fmt", "--check", ugly)
    assert (outcome.status, outcome.out, outcome.err) == (1, f"would reformat {ugly}\n", "")
    assert ugly.read_text(encoding="utf-8") == UGLY
    ugly.write_text(PRETTY, encoding="utf-8")
    assert nacre_here("fmt", "--check", ugly).status == 0


def test_standard_input_is_formatted_to_standard_output() -> None:
    outcome = nacre_here("fmt", "-", stdin=UGLY.encode())
    assert (outcome.status, outcome.out, outcome.err) == (0, PRETTY, "")


def test_standard_input_can_be_checked() -> None:
    assert nacre_here("fmt", "--check", "-", stdin=PRETTY.encode()).status == 0
    outcome = nacre_here("fmt", "--check", "-", stdin=UGLY.encode())
    assert (outcome.status, outcome.out) == (1, "would reformat -\n")


def test_a_file_with_syntax_errors_is_reported_and_left_untouched(ugly: Path) -> None:
    ugly.write_text(BROKEN, encoding="utf-8")
    outcome = nacre_here("fmt", ugly)
    assert (outcome.status, outcome.out) == (1, "")
    assert "error[DOC19]: expected `:`" in outcome.err
    assert ugly.read_text(encoding="utf-8") == BROKEN


def test_a_file_that_means_nothing_yet_is_formatted(capsys: Capsys, ugly: Path) -> None:
    ugly.write_text("wait( nothing )\n", encoding="utf-8")
    assert invoke(capsys, "fmt", ugly).status == 0
    assert ugly.read_text(encoding="utf-8") == "wait(nothing)\n"


def test_several_files_end_with_the_worst_status(capsys: Capsys, ugly: Path) -> None:
    broken = ugly.with_name("broken.nem")
    broken.write_text(BROKEN, encoding="utf-8")
    last = ugly.with_name("last.nem")
    last.write_text(UGLY, encoding="utf-8")
    assert invoke(capsys, "fmt", ugly, broken, last).status == 1
    assert ugly.read_text(encoding="utf-8") == last.read_text(encoding="utf-8") == PRETTY
    ugly.write_text(UGLY, encoding="utf-8")
    outcome = invoke(capsys, "fmt", broken, ugly.with_name("missing.nem"), ugly)
    assert (outcome.status, outcome.out) == (2, f"reformatted {ugly}\n")
    assert "missing.nem does not exist" in outcome.err


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o755, 0o664])
def test_the_mode_of_a_file_is_kept(capsys: Capsys, ugly: Path, mode: int) -> None:
    ugly.chmod(mode)
    assert invoke(capsys, "fmt", ugly).status == 0
    assert stat.S_IMODE(ugly.stat().st_mode) == mode


def test_a_link_stays_a_link_and_its_target_is_rewritten(capsys: Capsys, ugly: Path) -> None:
    folder = ugly.parent / "elsewhere"
    folder.mkdir()
    link = folder / "link.nem"
    link.symlink_to("../f.nem")
    assert invoke(capsys, "fmt", link).status == 0
    assert link.is_symlink()
    assert os.readlink(link) == "../f.nem"
    assert ugly.read_text(encoding="utf-8") == PRETTY
    assert [path.name for path in folder.iterdir()] == ["link.nem"]


# Written whole or not at all


def test_a_failed_write_leaves_the_old_text_and_no_trace(
    capsys: Capsys, ugly: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    outcome = invoke(capsys, "fmt", ugly)
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err == f"nacre: cannot write {ugly}: No space left on device\n"
    assert ugly.read_text(encoding="utf-8") == UGLY
    assert list(ugly.parent.iterdir()) == [ugly]


def test_a_disk_that_fills_up_leaves_the_old_text_and_no_trace(ugly: Path) -> None:
    def no_more_bytes() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4, 4))

    outcome = nacre("fmt", ugly, before=no_more_bytes, env={"PYTHONDONTWRITEBYTECODE": "1"})
    assert outcome.status == 1
    assert f"cannot write {ugly}" in outcome.err
    assert ugly.read_text(encoding="utf-8") == UGLY
    assert list(ugly.parent.iterdir()) == [ugly]


def test_a_folder_that_may_not_be_written_is_reported(ugly: Path) -> None:
    ugly.parent.chmod(0o555)
    try:
        outcome = nacre("fmt", ugly, before=without_privileges)
    finally:
        ugly.parent.chmod(0o755)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err == f"nacre: cannot write {ugly}: Permission denied\n"
    assert ugly.read_text(encoding="utf-8") == UGLY
    assert list(ugly.parent.iterdir()) == [ugly]


def test_readers_see_the_old_text_or_the_new_one(
    capsys: Capsys, ugly: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    replace = os.replace

    def watched(temporary: str, target: Path) -> None:
        seen.append(ugly.read_text(encoding="utf-8"))
        assert Path(temporary).parent == ugly.parent
        replace(temporary, target)
        seen.append(ugly.read_text(encoding="utf-8"))

    monkeypatch.setattr(os, "replace", watched)
    assert invoke(capsys, "fmt", ugly).status == 0
    assert seen == [UGLY, PRETTY]


# What would change


def test_diff_shows_what_would_change_and_changes_nothing(capsys: Capsys, ugly: Path) -> None:
    outcome = invoke(capsys, "fmt", "--diff", ugly)
    assert (outcome.status, outcome.err) == (1, "")
    assert outcome.out.startswith(f"--- {ugly}\n+++ {ugly}\n@@ -1,")
    assert "-buffer   A:L2(align=64,size=4*16)   # also kept\n" in outcome.out
    assert "+buffer A : L2 (size=4 * 16, align=64)  # also kept\n" in outcome.out
    assert ugly.read_text(encoding="utf-8") == UGLY


def test_diff_of_a_formatted_file_is_empty(capsys: Capsys, ugly: Path) -> None:
    ugly.write_text(PRETTY, encoding="utf-8")
    outcome = invoke(capsys, "fmt", "--diff", ugly)
    assert (outcome.status, outcome.text) == (0, "")


def test_diff_reads_standard_input_and_goes_on_after_a_broken_file(ugly: Path) -> None:
    outcome = nacre_here("fmt", "--diff", "-", stdin=UGLY.encode())
    assert (outcome.status, outcome.out.count("\n@@ ")) == (1, 1)
    broken = ugly.with_name("broken.nem")
    broken.write_text(BROKEN, encoding="utf-8")
    outcome = nacre_here("fmt", "--diff", "--check", broken, ugly)
    assert outcome.status == 1
    assert "DOC19" in outcome.err
    assert "+const X = 1" in outcome.out


def test_a_quantisation_that_is_named_is_formatted(capsys: Capsys, ugly: Path) -> None:
    scales = ",".join(f"0.{n}" for n in range(1, 40))
    zeros = ",".join("0" for _ in range(1, 40))
    ugly.write_text(
        "let  T=i8\nlet q=per_tensor( scale=0.5,zero_point=0 ) # one\n"
        f"let w=per_channel(axis=0,scales=[{scales}],zero_points=[{zeros}])\n"
        "buffer B:L2(size=39)\nlet r=region(B,0,39) elem=T,shape=[39],layout=C,quant=w\n"
    )
    assert invoke(capsys, "fmt", ugly).status == 0
    text = ugly.read_text()
    assert "let T = i8\nlet q = per_tensor(scale=0.5, zero_point=0)  # one\n" in text
    assert "let w = per_channel(\n    axis=0,\n    scales=[" in text
    assert text.endswith("let r = region(B, 0, 39) elem=T, shape=[39], layout=C, quant=w\n")
    assert invoke(capsys, "check", ugly).status == 0
    assert invoke(capsys, "fmt", "--check", ugly).status == 0


def test_findings_of_one_cause_are_one(tmp_path: Path, capsys: Capsys) -> None:
    path = tmp_path / "f.nem"
    path.write_text("".join(f"buffer B{n} L2 (size=4)\n" for n in range(9)), encoding="utf-8")
    outcome = invoke(capsys, "fmt", path)
    assert outcome.status == 1
    assert outcome.text.count("error[") == 1
    assert "and 8 more like it: lines 2, 3, 4" in outcome.text


def test_a_long_file_says_that_it_is_being_formatted(
    ugly: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def shown(name: str) -> AbstractContextManager[None]:
        seen.append(name)
        return nullcontext()

    monkeypatch.setattr("nacre.cli.fmt.stage", shown)
    assert invoke(capsys, "fmt", ugly).status == 0
    assert seen == ["formatting"]

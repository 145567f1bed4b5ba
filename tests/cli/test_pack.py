"""`nacre pack` and `nacre unpack`, and bytecode where other verbs expect a program."""

from __future__ import annotations

from pathlib import Path

import pytest

from nacre.nem import check, format, pack, unpack
from tests.cli.runner import invoke

Capsys = pytest.CaptureFixture[str]

DEVICE = 'include "npm4k.nem"\ndevice mine extends npm4k {\n}\n'
PROGRAM = """\
include "../devices/mine.nem"
device   mine
program p:
buffer X : DDR (size=64)
buffer Y : L2 (size=32)   # too small
t = transfer.async(src=region(X, 0, 64), dst=region(Y, 0, 64))
wait(t)
"""
SOUND = """\
include "../devices/mine.nem"
device mine
program p:
buffer X : DDR (size=64)
buffer Y : L2 (size=64)  # as large
t = transfer.async(dst=region(Y, 0, 64), src=region(X, 0, 64))
wait(t)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "devices").mkdir()
    (tmp_path / "plans").mkdir()
    (tmp_path / "devices" / "mine.nem").write_text(DEVICE)
    (tmp_path / "plans" / "p.nem").write_text(PROGRAM)
    (tmp_path / "plans" / "sound.nem").write_text(SOUND)
    return tmp_path


def test_a_file_brings_what_it_includes_and_names_places_of_its_text(
    folder: Path, capsys: Capsys
) -> None:
    made = folder / "p.nemb"
    assert invoke(capsys, "pack", folder / "plans/p.nem", "-o", made).status == 0
    before = invoke(capsys, "check", folder / "plans/p.nem").out
    (folder / "devices/mine.nem").unlink()
    after = invoke(capsys, "check", made)
    assert after.status == 1
    assert "p.nem:6:56" in before
    assert "p.nem:6:56" in after.out
    assert "error[EXT01]" in after.out


def test_the_text_is_shown_where_it_lies_beside_unchanged(folder: Path, capsys: Capsys) -> None:
    made = folder / "plans/p.nemb"
    invoke(capsys, "pack", folder / "plans/p.nem", "-o", made)
    line = "t = transfer.async(src=region(X, 0, 64), dst=region(Y, 0, 64))"
    assert line in invoke(capsys, "check", made).out
    (folder / "plans/p.nem").write_text(PROGRAM + "\n")
    assert line not in invoke(capsys, "check", made).out
    assert "region(Y, 0, 64)" in invoke(capsys, "check", made).out


def test_a_library_has_programs_by_name(folder: Path, capsys: Capsys) -> None:
    made = folder / "lib.nemb"
    plans = [folder / "plans/p.nem", folder / "plans/sound.nem"]
    assert invoke(capsys, "pack", *plans, "-o", made).status == 0
    assert "error[BYT09]" in invoke(capsys, "check", made).out
    assert invoke(capsys, "check", made / "plans/sound.nem").status == 0
    assert invoke(capsys, "run", made / "plans/sound.nem", "--uninitialized", "zero").status == 0
    out = folder / "all"
    assert invoke(capsys, "unpack", made, "-o", out).status == 0
    assert (out / "devices/mine.nem").read_text() == DEVICE
    user = folder / "user.nem"
    user.write_text('include "lib.nemb/devices/mine.nem"\ndevice mine\nprogram q:\nconst X = 1\n')
    assert invoke(capsys, "check", user).status == 0


def test_a_self_contained_file_has_what_nacre_ships(folder: Path, capsys: Capsys) -> None:
    made, out = folder / "s.nemb", folder / "out"
    source = folder / "plans/sound.nem"
    assert invoke(capsys, "pack", source, "--self-contained", "-o", made).status == 0
    assert (
        invoke(capsys, "check", "--strict", made).out
        == invoke(capsys, "check", "--strict", source).out
    )
    invoke(capsys, "unpack", made, "-o", out)
    assert (out / "nacre/npm4k.nem").is_file()


def test_unpacking_writes_the_canonical_text(folder: Path, capsys: Capsys) -> None:
    made = folder / "p.nemb"
    invoke(capsys, "pack", folder / "plans/p.nem", "-o", made)
    canonical = format(PROGRAM)
    assert invoke(capsys, "unpack", made).out == canonical
    assert invoke(capsys, "unpack", made, "-o", folder / "x.nem").status == 0
    assert (folder / "x.nem").read_text() == canonical
    assert invoke(capsys, "fmt", "--check", made).status == 0


def test_what_is_wrong_is_told_and_nothing_is_written(folder: Path, capsys: Capsys) -> None:
    bad = folder / "bad.nem"
    bad.write_text("const = 1\n")
    out = invoke(capsys, "pack", bad, "-o", folder / "bad.nemb")
    assert out.status == 1
    assert not (folder / "bad.nemb").exists()
    (folder / "cut.nemb").write_bytes(pack(SOUND)[:-9])
    for verb in ("check", "run", "fmt", "unpack"):
        done = invoke(capsys, verb, folder / "cut.nemb")
        assert done.status == 1
        assert "BYT01" in done.out + done.err


def test_bytecode_is_not_fixed_in_place(folder: Path, capsys: Capsys) -> None:
    made = folder / "f.nemb"
    data = pack("buffer A : L2 (size=64, align=48)\n")
    made.write_bytes(data)
    done = invoke(capsys, "check", "--fix", made)
    assert "is bytecode" in done.err
    assert made.read_bytes() == data


def test_python_takes_a_path_of_bytecode(folder: Path, capsys: Capsys) -> None:
    made = folder / "p.nemb"
    invoke(capsys, "pack", folder / "plans/p.nem", "-o", made)
    assert [d.code for d in check(made)] == [d.code for d in check(folder / "plans/p.nem")]
    assert unpack(pack(SOUND)) == SOUND

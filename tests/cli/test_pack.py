"""`nacre pack` and `nacre unpack`, and bytecode where other verbs expect a program."""

from __future__ import annotations

from pathlib import Path

import pytest

from nacre import nem
from nacre.nem import check, format, pack, unpack
from tests.cli.runner import invoke, nacre

pytestmark = pytest.mark.sampled(2)  # together they take long

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
    checked = invoke(capsys, "fmt", "--check", made)
    assert checked.status == 0
    assert "one form only; `nacre unpack`" in checked.err


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


@pytest.mark.parametrize("value", [Path("p.nem"), b"const X = 1", ["x"], None, 3, memoryview(b"")])
@pytest.mark.parametrize("name", ["pack", "format", "to_mlir", "from_mlir", "check_mlir"])
def test_what_is_no_text_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(
        TypeError, match=f"{name} takes a text as str, found {type(value).__name__}"
    ):
        getattr(nem, name)(value)


@pytest.mark.parametrize("value", ["const X = 1", Path("p.nemb"), [1], None, 3])
def test_what_is_no_bytes_is_refused_by_name(value: object) -> None:
    with pytest.raises(TypeError, match=f"as bytes, found {type(value).__name__}"):
        unpack(value)  # type: ignore[arg-type]
    if not isinstance(value, str | Path):
        with pytest.raises(TypeError, match=f"a str or a Path, found {type(value).__name__}"):
            check(value)  # type: ignore[arg-type]


def test_bytes_of_any_kind_are_unpacked() -> None:
    data = pack("const X = 1\n")
    for same in (data, bytearray(data), memoryview(data), memoryview(b"1" + data)[1:]):
        assert unpack(same) == "const X = 1\n"


def pack_files(capsys: Capsys, folder: Path, *roots: Path) -> Path:
    """A file of these documents."""
    made = folder / "made.nemb"
    outcome = invoke(capsys, "pack", *roots, "-o", made)
    assert outcome.status == 0, outcome.text
    return made


def require_same_elsewhere(capsys: Capsys, made: Path, away: Path, *names: str) -> None:
    """What is packed, and what is unpacked from it, is checked without what it was made of."""
    away.mkdir()
    moved = away / "m.nemb"
    moved.write_bytes(made.read_bytes())
    for name in names:
        outcome = invoke(capsys, "check", f"{moved}/{name}".rstrip("/"))
        assert outcome.status == 0, outcome.text
    unpacked = invoke(capsys, "unpack", moved, "-o", away / "out")
    assert unpacked.status == 0, unpacked.text
    for path in [*(away / "out").rglob("*.nem"), *(away / "out").rglob("*.nemb")]:
        assert invoke(capsys, "check", path).status == 0
    again = [path for path in (away / "out").rglob("*") if path.name == "p.nem"]
    assert invoke(capsys, "pack", *again, "-o", away / "again.nemb").status == 0


@pytest.mark.parametrize("is_alone", [True, False])
def test_bytecode_that_is_included_is_unpacked_as_such(
    tmp_path: Path, capsys: Capsys, is_alone: bool
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "base.nem").write_text(DEVICE.replace("mine", "base"))
    device = (
        DEVICE
        if is_alone
        else DEVICE.replace('"npm4k.nem"', '"base.nem"').replace("s npm4k", "s base")
    )
    (here / "mine.nem").write_text(device)
    invoke(capsys, "pack", here / "mine.nem", "-o", here / "mine.nemb")
    (here / "mine.nem").unlink()
    (here / "base.nem").unlink()
    (here / "p.nem").write_text(SOUND.replace("../devices/mine.nem", "mine.nemb"))
    made = pack_files(capsys, tmp_path, here / "p.nem")
    (here / "mine.nemb").unlink()
    require_same_elsewhere(capsys, made, tmp_path / "away", "")


@pytest.mark.parametrize("is_device", [False, True])
def test_files_included_by_absolute_paths_are_found_inside(
    folder: Path, capsys: Capsys, is_device: bool
) -> None:
    mine, plan = folder / "devices/mine.nem", folder / "plans/p.nem"
    text = SOUND.replace("../devices/mine.nem", str(mine))
    if is_device:
        text = SOUND.replace('include "../devices/mine.nem"\ndevice mine', f'device "{mine}"')
    plan.write_text(text)
    made = pack_files(capsys, folder, plan)
    mine.unlink()
    assert str(folder).encode() not in made.read_bytes()
    require_same_elsewhere(capsys, made, folder / "away", "")


def test_places_stay_those_of_the_text_where_an_include_is_another_inside(
    folder: Path, capsys: Capsys
) -> None:
    plan = folder / "plans/p.nem"
    plan.write_text(PROGRAM.replace("../devices/mine.nem", str(folder / "devices/mine.nem")))
    made = pack_files(capsys, folder, plan)
    plan.unlink()
    (folder / "devices/mine.nem").unlink()
    assert "p.nem:6:56" in invoke(capsys, "check", made).out
    again = folder / "again.nemb"
    assert invoke(capsys, "pack", made, "--no-comments", "-o", again).status == 0
    assert "p.nem:6:56" in invoke(capsys, "check", again).out
    assert "#" not in invoke(capsys, "unpack", again).out


def test_a_file_that_two_names_lead_to_is_found_by_both(folder: Path, capsys: Capsys) -> None:
    (folder / "devices/link.nem").symlink_to("mine.nem")
    (folder / "devices/user.nem").write_text('include "link.nem"\n')
    plan = folder / "plans/p.nem"
    plan.write_text('include "../devices/user.nem"\n' + SOUND)
    made = pack_files(capsys, folder, plan)
    for path in (folder / "devices").iterdir():
        path.unlink()
    require_same_elsewhere(capsys, made, folder / "away", "")


def test_names_inside_do_not_tell_where_files_lay(tmp_path: Path, capsys: Capsys) -> None:
    for name in ("alice/one/a.nem", "bob/two/b.nem", "bob/three/a.nem"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("program p:\nconst X = 1\n")
    plans = [tmp_path / name for name in ("alice/one/a.nem", "bob/two/b.nem")]
    made = pack_files(capsys, tmp_path, *plans)
    assert "`a.nem`, `b.nem`" in invoke(capsys, "check", made).out
    made = pack_files(capsys, tmp_path, *plans, tmp_path / "bob/three/a.nem")
    assert "`one/a.nem`, `two/b.nem`, `three/a.nem`" in invoke(capsys, "check", made).out


def test_no_include_leads_to_another_file_inside(tmp_path: Path, capsys: Capsys) -> None:
    program = 'include "npm4k.nem"\ndevice npm4k\nprogram p:\nconst X = 1\n'
    for name, text in (("a/p.nem", program), ("b/npm4k.nem", "program q:\nconst X = 1\n")):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    made = pack_files(capsys, tmp_path, tmp_path / "a/p.nem", tmp_path / "b/npm4k.nem")
    assert invoke(capsys, "check", made / "a/p.nem").status == 0
    (tmp_path / "a/nacre").mkdir()
    (tmp_path / "a/nacre/npm4k.nem").write_text(DEVICE.replace("npm4k", "npm8k"))
    (tmp_path / "a/p.nem").write_text('include "nacre/npm4k.nem"\n' + program)
    made = pack_files(capsys, tmp_path, tmp_path / "a/p.nem")
    assert invoke(capsys, "check", made).status == 0


def test_self_contained_files_are_packed_again_with_others(folder: Path, capsys: Capsys) -> None:
    made, both = folder / "s.nemb", folder / "both.nemb"
    invoke(capsys, "pack", folder / "plans/sound.nem", "--self-contained", "-o", made)
    (folder / "q.nem").write_text('include "npm4k.nem"\ndevice npm4k\nprogram q:\nconst X = 1\n')
    assert invoke(capsys, "pack", made, folder / "q.nem", "-o", both).status == 0
    assert invoke(capsys, "check", both / "s.nemb/plans/sound.nem").status == 0
    out = folder / "out"
    assert invoke(capsys, "unpack", both, "-o", out).status == 0
    text = invoke(capsys, "unpack", out / "s.nemb/devices/mine.nem").out
    assert '"../nacre/npm4k.nem"' in text
    assert invoke(capsys, "pack", made, "-o", both).status == 0
    assert both.read_bytes() == made.read_bytes()


@pytest.mark.parametrize("odd", ["a:b", "a\\b"])
def test_odd_names_of_folders_are_other_ones_inside(
    tmp_path: Path, capsys: Capsys, odd: str
) -> None:
    (tmp_path / odd).mkdir()
    (tmp_path / odd / "mine.nem").write_text(DEVICE)
    plan = tmp_path / "p.nem"
    include = f"{odd}/mine.nem".replace("\\", "\\\\")
    plan.write_text(SOUND.replace("../devices/mine.nem", include))
    made = pack_files(capsys, tmp_path, plan)
    (tmp_path / odd / "mine.nem").unlink()
    require_same_elsewhere(capsys, made, tmp_path / "away", "")


@pytest.mark.parametrize("verb", [("unpack",), ("nem", "from-mlir"), ("nem", "to-mlir")])
def test_texts_are_not_written_under_names_of_bytecode(
    folder: Path, capsys: Capsys, verb: tuple[str, ...]
) -> None:
    out = folder / "x.nemb"
    outcome = invoke(capsys, *verb, folder / "plans/sound.nem", "-o", out)
    assert outcome.status == 2
    assert "is a name of bytecode" in outcome.err
    assert not out.exists()


def test_a_trailing_slash_names_a_folder(folder: Path, capsys: Capsys) -> None:
    made = pack_files(capsys, folder, folder / "plans/sound.nem", folder / "plans/p.nem")
    assert invoke(capsys, "unpack", made, "-o", f"{folder / 'v1.0'}/").status == 0
    assert (folder / "v1.0/plans/sound.nem").is_file()


def test_includes_beyond_the_project_are_packed_where_that_is_allowed(
    folder: Path, capsys: Capsys
) -> None:
    far = folder / "far"
    far.mkdir()
    (far / "mine.nem").write_text(DEVICE)
    near = folder / "a/b/c"
    near.mkdir(parents=True)
    (near / "p.nem").write_text(SOUND.replace("../devices", "../../../far"))
    refused = invoke(capsys, "pack", near / "p.nem", "-o", folder / "x.nemb")
    assert "INC08" in refused.text
    assert "--include-root" in refused.text
    done = invoke(capsys, "pack", near / "p.nem", "--include-root", far, "-o", folder / "x.nemb")
    assert done.status == 0, done.text
    assert invoke(capsys, "check", folder / "x.nemb").status == 0


def test_a_name_that_holds_something_else_says_what(folder: Path, capsys: Capsys) -> None:
    text, copied, program = folder / "t.nemb", folder / "c.nem", folder / "b.nem"
    text.write_text(SOUND)
    outcome = invoke(capsys, "check", text)
    assert "error[BYT02]: this is a text" in outcome.out
    assert "rename it, or `nacre pack` it" in outcome.out
    copied.write_bytes(pack(SOUND).replace(b"\r\n", b"\n"))
    outcome = invoke(capsys, "check", copied)
    assert "error[BYT02]: this was bytecode" in outcome.out
    program.write_bytes(pack("program p:\nconst X = 1\n"))
    assert invoke(capsys, "check", program).status == 0


def test_a_library_is_packed_again(folder: Path, capsys: Capsys) -> None:
    made, again, bare = (folder / name for name in ("lib.nemb", "again.nemb", "bare.nemb"))
    plans = [folder / "plans/p.nem", folder / "plans/sound.nem"]
    invoke(capsys, "pack", *plans, "-o", made)
    assert invoke(capsys, "pack", made, "-o", again).status == 0
    assert again.read_bytes() == made.read_bytes()
    assert invoke(capsys, "pack", made, "--no-comments", "-o", bare).status == 0
    assert "# too small" in invoke(capsys, "unpack", made / "plans/p.nem").out
    text = invoke(capsys, "unpack", bare / "plans/p.nem").out
    assert ("#" in text, "buffer Y" in text) == (False, True)
    assert "p.nem:6:56" in invoke(capsys, "check", bare / "plans/p.nem").out
    (folder / "more.nem").write_text("const X = 1\n")
    both = folder / "both.nemb"
    assert invoke(capsys, "pack", made, folder / "more.nem", "-o", both).status == 0
    found = invoke(capsys, "check", both)
    assert "there are 3 programs in it" in found.out
    asked = invoke(capsys, "pack", made / "none.nem", "-o", folder / "x.nemb")
    assert (asked.status, "there is no `none.nem` in it" in asked.err) == (1, True)


def test_what_users_edit_is_not_written_over(folder: Path, capsys: Capsys) -> None:
    made, text = folder / "p.nemb", folder / "mine.nem"
    invoke(capsys, "pack", folder / "plans/p.nem", "-o", made)
    text.write_text("# mine\n")
    refused = invoke(capsys, "unpack", made, "-o", text)
    assert (refused.status, refused.out) == (2, "")
    assert f"{text} is there already, with other content" in refused.err
    assert text.read_text() == "# mine\n"
    assert invoke(capsys, "unpack", made, "-o", text, "--force").status == 0
    assert text.read_text() == format(PROGRAM)
    assert invoke(capsys, "unpack", made, "-o", text).status == 0, "the same content again"
    out = folder / "out"
    assert invoke(capsys, "unpack", made, "-o", out).status == 0
    (out / "devices/mine.nem").write_text("# mine\n")
    (out / "plans/p.nem").unlink()
    refused = invoke(capsys, "unpack", made, "-o", out)
    assert (refused.status, "devices/mine.nem is there" in refused.err) == (2, True)
    assert not (out / "plans/p.nem").exists(), "all or nothing"
    assert invoke(capsys, "unpack", made, "-o", out, "--force").status == 0
    assert (out / "devices/mine.nem").read_text() == DEVICE


def test_a_file_without_a_suffix_that_is_there_is_a_file(folder: Path, capsys: Capsys) -> None:
    (folder / "README").write_text("mine\n")
    (folder / "p.nemb").write_bytes(pack("const X = 1\n"))
    refused = invoke(capsys, "unpack", folder / "p.nemb", "-o", folder / "README")
    assert (refused.status, "with other content" in refused.err) == (2, True)
    forced = invoke(capsys, "unpack", folder / "p.nemb", "-o", folder / "README", "--force")
    assert (forced.status, (folder / "README").read_text()) == (0, "const X = 1\n")


def test_the_text_of_what_is_included_is_shown_where_it_lies(folder: Path, capsys: Capsys) -> None:
    (folder / "devices/bad.nem").write_text(
        'include   "npm4k.nem"\ndevice bad   extends npm5k {}\n'
    )
    (folder / "plans/n.nem").write_text('include "../devices/bad.nem"\nprogram p:\nconst X = 1\n')
    line = "device bad   extends npm5k {}"
    beside, above = folder / "plans/n.nemb", folder / "n.nemb"
    for made in (beside, above):
        assert invoke(capsys, "pack", folder / "plans/n.nem", "-o", made).status == 0
        assert line in invoke(capsys, "check", made).out
    (folder / "devices/bad.nem").write_text("# another\n")
    assert line not in invoke(capsys, "check", beside).out


def test_findings_name_files_inside_as_they_were_named(
    folder: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    plans = ("plans/p.nem", "plans/sound.nem")
    invoke(capsys, "pack", *plans, "-o", "lib.nemb")
    Path("miss.nem").write_text('include "lib.nemb/none.nem"\nprogram p:\nconst X = 1\n')
    missing = invoke(capsys, "check", "miss.nem")
    assert "error[BYT09]: there is no `none.nem` in it" in missing.out
    assert "--> lib.nemb/none.nem\n" in missing.out
    assert "`lib.nemb/plans/p.nem`" in missing.out, "which there is"
    assert str(folder) not in missing.out
    Path("uses.nem").write_text('include "lib.nemb/plans/p.nem"\nprogram p:\nconst X = Z\n')
    Path("two").mkdir()
    Path("two/uses.nem").write_text('include "../lib.nemb/plans/none.nem"\nconst X = Z\n')
    for name in ("uses.nem", "two/uses.nem"):
        assert str(folder) not in invoke(capsys, "check", name).out


@pytest.mark.parametrize("more", [(), ("--self-contained",)])
def test_copies_that_packed_files_bring_along_are_one(
    more: tuple[str, ...], folder: Path, capsys: Capsys
) -> None:
    one, two = folder / "one", folder / "two"
    for place, name in ((one, "a"), (two, "b")):
        place.mkdir()
        text = f'include "../devices/mine.nem"\ndevice {name} extends mine {{\n}}\n'
        (place / f"{name}.nem").write_text(text)
        made = place / f"{name}.nemb"
        assert invoke(capsys, "pack", place / f"{name}.nem", "-o", made, *more).status == 0
    packed = folder / "devices/mine.nemb"
    assert invoke(capsys, "pack", folder / "devices/mine.nem", "-o", packed, *more).status == 0
    ways = ["one/a.nemb", "two/b.nemb", "devices/mine.nem", "devices/mine.nemb"]
    for others in (ways[:2], ways, ways[::-1], ["npm4k.nem", *ways]):
        includes = "".join(f'include "{way}"\n' for way in others)
        (folder / "on.nem").write_text(f"{includes}device mine\nprogram p:\nconst X = 1\n")
        found = invoke(capsys, "check", folder / "on.nem")
        assert found.status == 0, found.out
    assert invoke(capsys, "pack", folder / "on.nem", "-o", folder / "on.nemb").status == 0
    assert invoke(capsys, "check", folder / "on.nemb").status == 0


@pytest.mark.parametrize(
    "other",
    [
        DEVICE.replace("{\n", "{\n    unit_characteristics { NMU { latency = 7 } }\n"),
        DEVICE.replace("npm4k", "npm8k"),
    ],
)
def test_documents_that_differ_are_not_copies(other: str, folder: Path, capsys: Capsys) -> None:
    (folder / "packed").mkdir()
    made = folder / "packed/mine.nemb"
    invoke(capsys, "pack", folder / "devices/mine.nem", "-o", made)
    (folder / "devices/mine.nem").write_text(other)
    includes = 'include "packed/mine.nemb"\ninclude "devices/mine.nem"\n'
    (folder / "on.nem").write_text(f"{includes}device mine\nprogram p:\nconst X = 1\n")
    assert "error[INC05]" in invoke(capsys, "check", folder / "on.nem").out


def test_of_a_library_from_a_pipe_a_file_is_asked_for(folder: Path, capsys: Capsys) -> None:
    made = pack_files(capsys, folder, folder / "plans/sound.nem", folder / "plans/p.nem")
    piped = nacre("check", "-", stdin=made.read_bytes())
    assert "keep it in a file, and name one behind that: `lib.nemb/plans/sound.nem`" in piped.out
    assert f"`{made}/plans/sound.nem`" in invoke(capsys, "check", f"{made}/").out

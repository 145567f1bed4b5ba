"""Every verb that writes, to where it must not and to what is no file: nothing read is lost."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from nacre import nem
from tests.cli.runner import invoke, nacre_here
from tests.cli.writing.verbs import VERBS, make_given
from tests.effort import every

pytestmark = pytest.mark.sampled(2)  # together they take long

Capsys = pytest.CaptureFixture[str]

_TARGETS = ("-o", "--output", "--trace", "--report", "--newick", "--svg")
FOLDERS = (
    "compile", "compile without the model", "demo", "nac extract", "nac synthesise", "nac search",
    "llm build",
)  # fmt: skip
WRITERS = [
    name
    for name in VERBS
    if name not in (*FOLDERS, "fmt", "check --fix", "nac run of a plan")
]  # fmt: skip
PIPED = 1 << 20  # bytes that a pipe takes before anybody reads


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("given")
    make_given(folder)
    return folder


def _named(argument: object) -> tuple[str, Path]:
    """`X=file` as what comes before the file, and the file."""
    name, sign, path = str(argument).rpartition("=")
    return name + sign, Path(path)


def _calls_over_what_is_read(arguments: Sequence[object]) -> Iterator[tuple[Path, list[object]]]:
    """A verb's call with each of its targets on each of the files that it reads."""
    behind = [at + 1 for at, argument in enumerate(arguments[:-1]) if argument in _TARGETS]
    read = [_named(a)[1] for at, a in enumerate(arguments) if at not in behind]
    for at in behind:
        for path in dict.fromkeys(path for path in read if path.is_file()):
            call = list(arguments)
            call[at] = f"{_named(arguments[at])[0]}{path}"
            yield path, call


@pytest.mark.heavy("every verb that writes, and for each file that it reads")
@pytest.mark.parametrize("name", [name for name in WRITERS if name not in ("core lower",)])
def test_no_verb_writes_over_what_it_reads(
    name: str, given: Path, tmp_path: Path, capsys: Capsys
) -> None:
    for path, call in _calls_over_what_is_read(VERBS[name].arguments(given, tmp_path, 1)):
        before = path.read_bytes()
        outcome = invoke(capsys, *map(str, call))
        assert (outcome.status, path.read_bytes() == before) == (2, True), call


@pytest.mark.parametrize(
    ("arguments", "target"),
    [
        (("nem", "to-mlir", "p.nem"), "p.nem"),
        (("nem", "to-mlir", "p.nem"), "./p.nem"),
        (("nem", "to-mlir", "p.nem"), "link.mlir"),
        (("nem", "from-mlir", "m.mlir", "--force"), "m.mlir"),
        (("nem", "from-mlir", "m.mlir", "--check", "--force"), "m.mlir"),
        (("pack", "p.nem"), "link.mlir"),
        (("pack", "uses.nem"), "p.nem"),  # which it includes
        (("pack", "lib.nemb/p.nem"), "lib.nemb"),
        (("unpack", "p.nemb", "--force"), "p.nemb"),
        (("core", "canon", "m.core"), "m.core"),
        (("core", "convert", "m.core", "--optimise"), "m.core"),
        (("bind", "p.nem"), "p.nem"),
    ],
)
def test_what_is_read_is_told(
    arguments: tuple[str, ...], target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: Capsys, given: Path,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("p.nem").write_text("const X = 1\n")
    Path("uses.nem").write_text('include "p.nem"\nprogram p:\nconst Y = 1\n')
    Path("m.mlir").write_text(nem.to_mlir("const X = 1\n"))
    Path("p.nemb").write_bytes(nem.pack("const X = 1\n"))
    Path("m.core").write_bytes((given / "r1.core").read_bytes())
    Path("link.mlir").symlink_to("p.nem")
    assert invoke(capsys, "pack", "p.nem", "uses.nem", "-o", "lib.nemb").status == 0
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    outcome = invoke(capsys, *arguments, "-o", target)
    assert outcome.status == 2
    assert "is read, and would be written over" in outcome.err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="pipes whose size can be set")
@pytest.mark.parametrize("name", [n for n in WRITERS if not VERBS[n].is_loose])
def test_a_pipe_is_written_to_and_stays_one(
    name: str, given: Path, tmp_path: Path, capsys: Capsys
) -> None:
    plain, piped = tmp_path / "plain", tmp_path / "piped"
    for folder in (plain, piped):
        folder.mkdir()
    call = VERBS[name].arguments(given, plain, 1)
    assert invoke(capsys, *map(str, call)).status == 0
    wanted = {path.name: path.read_bytes() for path in plain.iterdir()}
    (target,) = {_named(a)[1].name for a in call if _named(a)[1].parent == plain}
    os.mkfifo(piped / target)
    handle = os.open(piped / target, os.O_RDWR | os.O_NONBLOCK)
    try:
        fcntl.fcntl(handle, fcntl.F_SETPIPE_SZ, PIPED)
        outcome = invoke(capsys, *map(str, VERBS[name].arguments(given, piped, 1)))
        if len(wanted) == 1:
            assert outcome.status == 0, outcome.err
            assert os.read(handle, PIPED) == wanted[target]
        else:  # constants beside it have no place
            assert (outcome.status, "Traceback" in outcome.err) == (2, False)
    finally:
        os.close(handle)
    assert [path.name for path in piped.iterdir()] == [target]
    assert stat.S_ISFIFO((piped / target).stat().st_mode)


STANDARD_OUTPUT = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "-"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("target", STANDARD_OUTPUT)
@pytest.mark.parametrize("way", [">> out", "| cat >> out"])
def test_standard_output_is_one_of_the_places_to_write(
    target: str, way: str, tmp_path: Path
) -> None:
    text = "const X = 1\n"
    (tmp_path / "p.nem").write_text(text)
    (tmp_path / "p.nemb").write_bytes(nem.pack(text))
    shell = f'echo before > out; "$0" -m nacre "$@" {way}'
    verbs = (("pack p.nem", nem.pack(text)), ("unpack p.nemb", text.encode()))
    for verb, wanted in every(2, verbs):
        call = ["sh", "-c", shell, sys.executable, *verb.split(), "-o", target]
        done = subprocess.run(call, cwd=tmp_path, capture_output=True, check=True, timeout=60)
        assert (tmp_path / "out").read_bytes() == b"before\n" + wanted
        is_told = target != "-" or verb.startswith("pack")
        assert done.stderr.decode().startswith(f"wrote {target}") == is_told


@pytest.mark.parametrize("target", ["/dev/null", "null"])
def test_a_device_is_not_replaced(target: str, tmp_path: Path) -> None:
    (tmp_path / "p.nem").write_text("const X = 1\n")
    (tmp_path / "null").symlink_to("/dev/null")
    assert nacre_here("pack", "p.nem", "-o", target, cwd=tmp_path).status == 0
    assert nacre_here("unpack", "p.nem", "-o", target, cwd=tmp_path).status == 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert (tmp_path / "null").is_symlink()


@pytest.mark.parametrize("name", [*(name for name in WRITERS if name != "pack"), *FOLDERS])
def test_no_verb_makes_a_file_of_the_name_of_standard_output(
    name: str, given: Path, tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call = list(VERBS[name].arguments(given, tmp_path, 1))
    if "-o" in call:
        call[call.index("-o") + 1] = "-"
        assert invoke(capsys, *map(str, call)).status in (0, 2)
        assert not (tmp_path / "-").exists()


@pytest.mark.parametrize("name", [*WRITERS, "nac extract"])
def test_a_missing_folder_is_named_before_the_work(
    name: str, given: Path, tmp_path: Path, capsys: Capsys
) -> None:
    missing = tmp_path / "no" / "such"
    outcome = invoke(capsys, *map(str, VERBS[name].arguments(given, missing, 1)))
    assert outcome.status == 2
    assert f"{missing} is no folder; make it first" in outcome.err
    assert not (tmp_path / "no").exists()

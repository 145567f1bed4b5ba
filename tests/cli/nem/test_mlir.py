"""`nacre nem to-mlir`, `from-mlir` and `irdl` from the terminal."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nacre import nem
from nacre.nem.mlir.irdl import irdl_text
from tests.cli.runner import invoke

pytest.importorskip("xdsl")

Capsys = pytest.CaptureFixture[str]

UGLY = "const   X=1 # one\nbuffer B:L2(size=X)\n"
TIDY = "const X = 1  # one\nbuffer B : L2 (size=X)\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.nem").write_text(UGLY)
    Path("broken.nem").write_text("const X =\n")
    Path("empty.nem").write_text("buffer B : L2 (size=0)\n")


def test_a_program_goes_to_mlir_and_comes_back(capsys: Capsys) -> None:
    outcome = invoke(capsys, "nem", "to-mlir", "p.nem", "-o", "p.mlir")
    assert (outcome.status, outcome.out) == (0, "wrote p.mlir\n")
    assert Path("p.mlir").read_text() == nem.to_mlir(UGLY, "p.nem")
    outcome = invoke(capsys, "nem", "from-mlir", "p.mlir", "-o", "q.nem")
    assert (outcome.status, outcome.out) == (0, "wrote q.nem\n")
    assert Path("q.nem").read_text() == TIDY


def test_without_a_name_the_text_is_printed(capsys: Capsys) -> None:
    Path("p.mlir").write_text(invoke(capsys, "nem", "to-mlir", "p.nem").out)
    assert invoke(capsys, "nem", "from-mlir", "p.mlir", "-o", "-").out == TIDY
    assert invoke(capsys, "nem", "irdl").out == irdl_text()


def test_mistakes_have_codes_and_write_nothing(capsys: Capsys) -> None:
    before = sorted(os.listdir())
    outcome = invoke(capsys, "nem", "to-mlir", "broken.nem", "-o", "b.mlir")
    assert (outcome.status, "error[DOC" in outcome.err) == (1, True)
    outcome = invoke(capsys, "nem", "from-mlir", "p.nem", "-o", "q.nem")
    assert (outcome.status, "error[MLR02]" in outcome.err) == (1, True)
    assert invoke(capsys, "nem", "from-mlir", "missing.mlir", "-o", "q.nem").status == 2
    assert invoke(capsys, "nem", "from-mlir", "p.nem", "--strict").status == 2
    assert sorted(os.listdir()) == before


def test_a_checked_module_is_written_where_it_has_no_errors(capsys: Capsys) -> None:
    for name in ("p", "empty"):
        invoke(capsys, "nem", "to-mlir", f"{name}.nem", "-o", f"{name}.mlir")
    outcome = invoke(capsys, "nem", "from-mlir", "p.mlir", "-o", "q.nem", "--check")
    assert (outcome.status, outcome.out.splitlines()[-1]) == (0, "checked p.mlir: no problems")
    assert Path("q.nem").read_text() == TIDY
    outcome = invoke(capsys, "nem", "from-mlir", "empty.mlir", "-o", "e.nem", "--check")
    assert outcome.status == 1
    assert "error[BUF01]" in outcome.out
    assert "empty.nem:1:21" in outcome.out
    assert not Path("e.nem").exists()


def test_what_users_edit_is_not_written_over(capsys: Capsys) -> None:
    invoke(capsys, "nem", "to-mlir", "p.nem", "-o", "p.mlir")
    Path("q.nem").write_text("# mine\n")
    refused = invoke(capsys, "nem", "from-mlir", "p.mlir", "-o", "q.nem")
    assert (refused.status, "q.nem is there already" in refused.err) == (2, True)
    assert Path("q.nem").read_text() == "# mine\n"
    assert invoke(capsys, "nem", "from-mlir", "p.mlir", "-o", "q.nem", "--force").status == 0
    assert Path("q.nem").read_text() == TIDY
    assert invoke(capsys, "nem", "to-mlir", "p.nem", "-o", "p.mlir").status == 0, "made, not edited"


@pytest.mark.parametrize("call", [("irdl",), ("to-mlir", "empty.nem")])
@pytest.mark.parametrize("name", ["p.nem", "new.nem", "new.nemb"])
def test_mlir_does_not_get_a_name_of_nem(call: tuple[str, ...], name: str, capsys: Capsys) -> None:
    before = sorted(os.listdir())
    refused = invoke(capsys, "nem", *call, "-o", name)
    assert (refused.status, "is a name of" in refused.err) == (2, True)
    assert (sorted(os.listdir()), Path("p.nem").read_text()) == (before, UGLY)


def test_of_bytecode_alone_places_are_those_of_its_text(capsys: Capsys) -> None:
    Path("dev.nem").write_text('include "npm4k.nem"\ndevice mine   extends npm4k {}\n')
    Path("bad.nem").write_text(
        'include "dev.nem"\ndevice mine\nprogram p:\n'
        "buffer X:DDR(size=64 ,align=64)\nbuffer Y :L2  (size=(16 +16))\n"
        "t =transfer.async( dst=region( Y,0 ,64 ) , src=region(X, 0,  64))   @resource( DMA[ 9] )\n"
    )
    assert invoke(capsys, "pack", "bad.nem", "-o", "bad.nemb").status == 0
    wanted = [line for line in invoke(capsys, "check", "bad.nem").out.splitlines() if "-->" in line]
    assert len(wanted) > 1
    Path("far").mkdir()
    Path("bad.nemb").rename("far/bad.nemb")
    made = invoke(capsys, "nem", "to-mlir", "far/bad.nemb", "-o", "far/bad.mlir")
    assert made.status == 0
    assert "warning: the module includes `dev.nem`, which far/bad.nemb has inside" in made.err
    assert "help: `nacre unpack far/bad.nemb -o FOLDER`" in made.err
    Path("dev.nem").rename("far/dev.nem")
    found = invoke(capsys, "nem", "from-mlir", "far/bad.mlir", "--check").out
    lines = [line for line in found.splitlines() if "-->" in line]
    assert [line.replace("far/", "") for line in lines] == wanted


def test_an_unknown_device_is_refused(capsys: Capsys) -> None:
    invoke(capsys, "nem", "to-mlir", "p.nem", "-o", "p.mlir")
    outcome = invoke(capsys, "nem", "from-mlir", "p.mlir", "--check", "--device", "npm_lit")
    assert (outcome.status, "error[DVD01]" in outcome.text) == (1, True)

"""Commands that would write where they should not."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from nacre.nac.format.file import to_bytes
from tests.cli.runner import invoke, nacre, without_privileges
from tests.nac.files import small

Capsys = pytest.CaptureFixture[str]
LONG = "x" * 400


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("s.nac").write_bytes(to_bytes(small()))
    np.save("x.npy", np.ones((2, 3), np.float32))
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("genome s.nac --svg s.nac", "a picture ends in .svg, found s.nac"),
        ("genome none.nac --svg a.png", "a picture ends in .svg, found a.png"),
        ("genome none.nac --svg .", "cannot write .: it is a folder"),
        ("genome none.nac --svg no/a.svg", "cannot write no/a.svg: no is no folder; make it"),
        ("genome none.nac --newick .", "cannot write .: it is a folder"),
        ("genome none.nac --newick no/a.nwk", "cannot write no/a.nwk: no is no folder; make it"),
        ("genome . --newick ./s.nac", "a tree as Newick text ends in .nwk, found s.nac"),
        ("genome s.nac --html a.html --newick a.svg", "ends in .nwk, found a.svg"),
        ("genome s.nac --html x.nac", "a page ends in .html, found x.nac"),
        ("genome s.nac --html s.nac", "a page ends in .html, found s.nac"),
        ("search --html s.nac", "a page ends in .html, found s.nac"),
        ("search -o .", "cannot write to .: the folder is not empty"),
        ("synthesise --input 1x1x8x8 -o .", "cannot write to .: the folder is not empty"),
        ("synthesise --input 1x1x8x8 -o no/such", "cannot write no/such: no is no folder"),
        ("run s.nac --input x=x.npy --output 0=x.npy", "`x.npy` is read"),
        ("run s.nac --input x=x.npy --output 0=s.nac", "`s.nac` is read"),
        ("run s.nac --input x=x.npy --output 0=o --output 1=./o", "`o` would be written twice"),
        (f"genome {LONG}", "cannot be read"),
        (f"build s.nac -o o.nac --tokenizer {LONG}", "cannot be read"),
        ("build s.nac -o o.nac --tokenizer nothing", "nothing does not exist"),
        ("convert s.nac -o loop.nac", "cannot write loop.nac: Too many levels"),
        ("convert s.nac -o loop.nac --weights external", "cannot write loop.nac: Too many levels"),
    ],
)
def test_what_is_read_stays_as_it_is(arguments: str, said: str, capsys: Capsys) -> None:
    os.symlink("loop.nac", "loop.nac")
    before = {path: path.read_bytes() for path in (Path("s.nac"), Path("x.npy"))}
    outcome = invoke(capsys, "nac", *arguments.split())
    assert outcome.status == 2, outcome
    assert said in outcome.err
    assert {path: path.read_bytes() for path in before} == before
    assert sorted(os.listdir()) == ["loop.nac", "s.nac", "x.npy"]


@pytest.mark.sampled(3)
@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders cannot be made read-only")
@pytest.mark.parametrize(
    "arguments",
    [
        "convert s.nac -o shut/o.nac --weights external",
        "extract s.nac -o shut/parts",
        "genome none.nac --svg shut/a.svg",
        "genome none.nac --newick shut/a.nwk",
        "run s.nac --input x=x.npy --output 0=shut/o.npy",
        "transplant s.nac s.nac -o shut/o.nac",
    ],
)
def test_a_folder_that_may_not_be_written_to(arguments: str) -> None:
    Path("shut").mkdir(mode=0o555)
    outcome = nacre("nac", *arguments.split(), before=without_privileges)
    assert outcome.status == 2, outcome
    assert "cannot write" in outcome.err
    assert "ermission denied" in outcome.err
    assert os.listdir("shut") == []


def test_a_missing_input_says_how_it_is_given(capsys: Capsys) -> None:
    outcome = invoke(capsys, "nac", "run", "s.nac")
    assert outcome.status == 1
    assert "= help: give " in outcome.err + outcome.out
    assert "`--input x=FILE.npy`" in outcome.err + outcome.out

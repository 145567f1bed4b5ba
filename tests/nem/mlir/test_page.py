"""What docs/mlir.md shows of upstream's tool is what it prints."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.nem.mlir.upstream import mlir_opt, needs_mlir_opt
from tools.shown_commands import ROOT, Shown, environment, make_folder

pytest.importorskip("xdsl")

MARKED = re.compile(
    r"<!-- run by tests/nem/mlir/test_page\.py, .*? -->\n```console\n(.*?)```", re.DOTALL
)


def shown() -> list[Shown]:
    text = (ROOT / "docs/mlir.md").read_text(encoding="utf-8")
    (block,) = MARKED.findall(text)
    parts = (part.partition("\n") for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:])
    return [Shown("docs/mlir.md", command, output) for command, _, output in parts]


def test_the_page_shows_the_tool() -> None:
    assert any(step.command.startswith("mlir-opt --irdl-file") for step in shown())


@needs_mlir_opt
@pytest.mark.full
def test_the_tool_prints_what_the_page_shows(tmp_path: Path) -> None:
    make_folder(tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/mlir-opt").symlink_to(str(mlir_opt()))
    given = environment()
    given["PATH"] = f"{tmp_path / 'bin'}{os.pathsep}{given['PATH']}"
    for step in shown():
        done = subprocess.run(
            step.command,
            shell=True,
            cwd=tmp_path,
            env=given,
            capture_output=True,
            text=True,
            check=False,
        )
        assert step.is_printed(done.stdout + done.stderr), (step.command, done.stdout, done.stderr)

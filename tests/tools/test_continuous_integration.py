"""`.ci/run`: tests and lint beside each other, and neither's failure is lost."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAKE = """#!/bin/sh
echo "$1 $2" >> made.txt
case "$1" in
test) echo "2 passed in 0.01s"; exit {tests} ;;
lint) echo "what lint says"; exit {lint} ;;
esac
"""


@pytest.mark.parametrize(
    ("tests", "lint", "is_green"), [(0, 0, True), (2, 0, False), (0, 2, False), (2, 2, False)]
)
def test_either_failure_fails_the_run(
    tmp_path: Path, tests: int, lint: int, is_green: bool
) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci")
    make = tmp_path / "make"
    make.write_text(MAKE.format(tests=tests, lint=lint))
    make.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [tmp_path / ".ci/run"], env={**os.environ, "PATH": path}, capture_output=True, check=False
    )
    assert (done.returncode == 0) == is_green
    assert done.stdout.decode().splitlines() == ["2 passed in 0.01s", "what lint says"]
    made = (tmp_path / "made.txt").read_text().split()
    assert made[0] == ".venv/.ready"  # both need it: it must not be made twice at once
    assert sorted(made[1:]) == ["lint", "test"]

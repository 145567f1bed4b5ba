"""Upstream's `mlir-opt`, where it is installed: Debian has it in `mlir-19-tools`."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from nacre.nem.mlir.irdl import irdl_text


@cache
def mlir_opt() -> str | None:
    """Where the tool is; None where it is not, or is another version's."""
    for name in ("mlir-opt-19", "mlir-opt"):
        path = shutil.which(name)
        if path is not None:
            done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
            if "version 19." in done.stdout:
                return path
    return None


needs_mlir_opt = pytest.mark.skipif(mlir_opt() is None, reason="needs mlir-opt of LLVM 19")


@cache
def _irdl_file() -> Path:
    path = Path(tempfile.mkdtemp()) / "nem.irdl.mlir"
    path.write_text(irdl_text())
    return path


def run_mlir_opt(text: str, *options: str) -> subprocess.CompletedProcess[str]:
    """What the tool makes of a text, with our dialect loaded and no other that it does not have."""
    command = [str(mlir_opt()), f"--irdl-file={_irdl_file()}", *options, "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def through_mlir_opt(text: str) -> str:
    """A module as the tool prints it again."""
    done = run_mlir_opt(text, "--mlir-print-debuginfo")
    assert done.returncode == 0, done.stderr[:2000]
    return done.stdout

"""Running `nacre` as users do: a process of its own, or within this one where that is enough."""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from nacre.cli.main import run

# What the environment says about terminals must not decide how a test ends.
_UNWANTED = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "COLUMNS", "TERM", "NACRE_TRACEBACK")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run ended with. `cpu_seconds` is what the process took, however busy the machine."""

    status: int
    out: str
    err: str
    cpu_seconds: float = 0.0

    @property
    def text(self) -> str:
        return self.out + self.err


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key not in _UNWANTED}
    return {**kept, "PYTHONIOENCODING": "utf-8", **(extra or {})}


def nacre(
    *arguments: str | bytes | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    before: Callable[[], None] | None = None,
    command: tuple[str, ...] = ("-m", "nacre"),
) -> Outcome:
    """Run the command in a process of its own."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *command, *arguments],
        cwd=cwd,
        env=environment(env),
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        check=False,
        timeout=120,
        preexec_fn=before,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    out, err = (stream.decode("utf-8", "replace") for stream in (done.stdout, done.stderr))
    return Outcome(done.returncode, out, err, cpu)


def invoke(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Outcome:
    """Run the command in this process: quicker, and everything but the process is the same."""
    capsys.readouterr()
    began = time.process_time()
    with pytest.raises(SystemExit) as stop:
        run([str(argument) for argument in arguments])
    cpu = time.process_time() - began
    captured = capsys.readouterr()
    status = stop.value.code
    assert isinstance(status, int)
    return Outcome(status, captured.out, captured.err, cpu)


def nacre_here(
    *arguments: str | bytes | Path, cwd: Path | None = None, stdin: bytes = b""
) -> Outcome:
    """Run the command in this process, in a folder and with an input of its own."""
    began = time.process_time()
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with (
        contextlib.chdir(cwd or Path.cwd()),
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
        for name in _UNWANTED:
            patch.delenv(name, raising=False)
        with pytest.raises(SystemExit) as stop:
            run([os.fsdecode(argument) for argument in arguments])
    cpu = time.process_time() - began
    assert isinstance(stop.value.code, int)
    return Outcome(stop.value.code, _text_of(out), _text_of(err), cpu)


def _text_of(stream: io.TextIOWrapper) -> str:
    stream.flush()
    written = stream.buffer
    assert isinstance(written, io.BytesIO)
    return written.getvalue().decode("utf-8", "replace")


def without_privileges() -> None:
    """Make file permissions count for root as well; called in the child before it starts."""
    if os.geteuid() != 0:
        return
    drop_bound, override_permissions, read_everything = 24, 1, 2  # prctl and capabilities of Linux
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (override_permissions, read_everything):
        if libc.prctl(drop_bound, capability, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "cannot give up a capability")

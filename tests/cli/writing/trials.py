"""A verb taken to its first write once; every trial goes on from there in a fork of its own.

What a verb computes before it writes is computed once, so that hundreds of faults cost little more
than their writes. Nothing is undone in a fork: it ends with the trial.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from contextvars import Context
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from nacre.cli.main import run
from tests.base.faults import CALLS, counting, failing, full_after

_CHANGES = ("open", "mkdir", "rename", "replace", "link", "unlink", "rmdir")
_KILLED = -signal.SIGKILL
_FOR_GOOD = ExitStack()  # what a fork has entered, it never leaves


@dataclass(frozen=True)
class Measure:
    """How much a verb writes, from its first write to its end."""

    calls: int  # of those that may fail
    offsets: list[int]  # how many bytes were written before each call of write, and in all
    events: int  # calls and returns of functions
    seconds: float


@dataclass(frozen=True)
class Ending:
    """How a trial ended: its status, negative where it was killed, and what it said."""

    status: int
    text: str

    @property
    def is_killed(self) -> bool:
        return self.status == _KILLED


@dataclass(frozen=True)
class Fault:
    """What happens to a verb that writes."""

    name: str
    begin: Callable[[], object] = lambda: None
    seconds: float | None = None  # until it is killed from outside


def failing_call(number: int) -> Fault:
    return Fault(f"call {number} fails", lambda: _FOR_GOOD.enter_context(failing(number, *CALLS)))


def full_disk(size: int) -> Fault:
    return Fault(f"full after {size}", lambda: _FOR_GOOD.enter_context(full_after(size)))


def killed_at(event: int) -> Fault:
    """Killed at a moment that is the same on a busy machine and on an idle one."""
    return Fault(f"killed at event {event}", lambda: _kill_at(event))


def killed_after(seconds: float) -> Fault:
    return Fault(f"killed after {1000 * seconds:.2f} ms", seconds=seconds)


def _kill_at(event: int) -> None:
    left = event

    def count(*_: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(count)


Judge = Callable[[Fault, Ending], str | None]


@dataclass
class Trials:
    """The trials of a verb in one folder, which begins each of them as `old` is."""

    arguments: list[str]
    out: Path
    old: Path
    scratch: Path
    judge: Judge
    faults: Callable[[Measure], Iterable[Fault]]
    counts: dict[str, int] = field(default_factory=dict)

    def run(self) -> list[str]:
        """What the judge found; `counts` says how many trials there were."""
        reader, writer = os.pipe()
        self.reset()
        child = os.fork()
        if child == 0:
            os.close(reader)
            _Start(self, writer).go()
        os.close(writer)
        with os.fdopen(reader) as stream:
            told = stream.read()
        os.waitpid(child, 0)
        if not told:
            return ["the verb ended before its first write"]
        found = json.loads(told)
        self.counts = found["counts"]
        return list(found["problems"])

    def reset(self) -> None:
        for path in self.out.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(self.old, self.out, dirs_exist_ok=True)


def run_apart(arguments: list[str], scratch: Path) -> Ending:
    """A verb once more, whole, in a fork that knows nothing of a verb that has begun."""
    child = os.fork()
    if child == 0:
        Context().run(_run, arguments, scratch / "output")
    return _ended(child, scratch / "output", None)


class _Start:
    """A process that stands before the first write of a verb."""

    def __init__(self, trials: Trials, writer: int) -> None:
        self._trials, self._writer = trials, writer
        self._real = {name: getattr(os, name) for name in _CHANGES}
        self._output = trials.scratch / "output"

    def go(self) -> NoReturn:
        for name in _CHANGES:
            setattr(os, name, self._first(name))
        _run(self._trials.arguments, self._output)

    def _first(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **given: Any) -> Any:  # noqa: ANN401
            if name == "open" and not (len(args) > 1 and args[1] & os.O_CREAT):
                return self._real[name](*args, **given)
            for each, real in self._real.items():
                setattr(os, each, real)
            self._stand()
            return getattr(os, name)(*args, **given)

        return call

    def _stand(self) -> None:
        """Returns in every fork, and never here."""
        gc.freeze()  # a collector that walks all objects copies the pages of each fork
        gc.disable()
        try:
            if self._is_fork(Fault("measured", self._measure)):
                return
            measure = Measure(**json.loads((self._trials.scratch / "measure").read_text()))
            problems: list[str] = []
            counts = {"trials": 0, "killed": 0, "failed": 0}
            for fault in self._trials.faults(measure):
                if self._is_fork(fault):
                    return
                counts["trials"] += 1
                counts["killed"] += self._ending.is_killed
                counts["failed"] += self._ending.status > 0
                found = self._trials.judge(fault, self._ending)
                if found is not None:
                    problems.append(f"{fault.name}: {found}")
        except BaseException:
            problems, counts = [traceback.format_exc()], {}
        os.write(self._writer, json.dumps({"problems": problems[:20], "counts": counts}).encode())
        os._exit(0)

    def _is_fork(self, fault: Fault) -> bool:
        self._trials.reset()
        child = os.fork()
        if child == 0:
            _say_into(self._output)
            fault.begin()
            return True
        self._ending = _ended(child, self._output, fault.seconds)
        return False

    def _measure(self) -> None:
        """Count everything, and write it down where the verb ends."""
        offsets = _FOR_GOOD.enter_context(counting())
        calls = _FOR_GOOD.enter_context(failing(0, *CALLS))
        events = 0
        began = time.perf_counter()

        def count(*_: object) -> None:
            nonlocal events
            events += 1

        def end(status: int) -> NoReturn:
            sys.setprofile(None)
            took = time.perf_counter() - began
            found = {"calls": calls[0], "offsets": offsets, "events": events, "seconds": took}
            (self._trials.scratch / "measure").write_text(json.dumps(found))
            real_end(status)

        real_end = os._exit
        os._exit = end
        sys.setprofile(count)


def _run(arguments: list[str], output: Path) -> NoReturn:
    """The verb in this process, which ends with it."""
    status = 70
    try:
        os.environ["NACRE_PROGRESS"] = "never"
        _say_into(output)
        run(arguments)
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 70
    except BaseException:
        traceback.print_exc()
    finally:
        sys.setprofile(None)
        sys.stdout.flush()
        os._exit(status)


def _say_into(path: Path) -> None:
    sys.stdout = sys.stderr = path.open("w", buffering=1)


def _ended(child: int, output: Path, seconds: float | None) -> Ending:
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)  # it may have ended: its number is kept until it is asked
    _, state = os.waitpid(child, 0)
    return Ending(os.waitstatus_to_exitcode(state), output.read_text())

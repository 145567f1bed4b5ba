"""How far a long piece of work is, where somebody watches."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from nacre.base.stages import Stage, stage, watch_stages
from nacre.cli.terminal.streams import echo_as_is

_QUIET_SECONDS = 0.5  # work this short needs no progress
_TICK_SECONDS = 0.1


class Progress:
    """A line on standard error that says how far a long run is, where somebody watches."""

    def __init__(self, what: str = "steps") -> None:
        self._what = what
        self.is_wanted = sys.stderr is not None and sys.stderr.isatty()
        self._due = time.monotonic() + _QUIET_SECONDS
        self._width = 0

    def __call__(self, done: int, total: int) -> None:
        """So many steps of so many have been taken."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + _TICK_SECONDS
        text = f"{done:,} of {total:,} {self._what} ({100 * done // max(total, 1)} %)"
        self._width = max(self._width, len(text))
        echo_as_is(f"\r{text.ljust(self._width)}", err=True, nl=False)

    def clear(self) -> None:
        """Take the line away."""
        if self._width:
            echo_as_is(f"\r{' ' * self._width}\r", err=True, nl=False)


@contextmanager
def watch_progress(
    doing: str, unit: str, *, is_whole: bool = False
) -> Iterator[Callable[[int, int], None]]:
    """A stage whose work says itself how far it is."""
    done, total = 0, 0

    def count(now: int, of: int) -> None:
        nonlocal done, total
        done, total = now, of

    with stage(doing, unit, lambda: (done, total), is_whole=is_whole):
        yield count


_UNWATCHED_SECONDS = 2.0  # where nobody sits at a terminal, shorter work says nothing
_LEAST_WORK = 0.75  # of them spent on work rather than on waiting for the machine
_COUNT_SECONDS = 2.0  # a stage of which nothing is done yet says how far it is after so long
_REPEAT_SECONDS = 10.0  # and longer work says so often how far it is


@contextmanager
def show_stages() -> Iterator[None]:
    """While something runs, say on standard error which of its stages it is in.

    At a terminal that is one line which is rewritten; elsewhere a line for each stage, and then
    every ten seconds, after the first two. `NACRE_PROGRESS=never` asks for silence.
    """
    if sys.stderr is None or os.environ.get("NACRE_PROGRESS") == "never":
        yield
        return
    with watch_stages() as stages:
        display = _StageDisplay(stages)
        token = _SHOWN.set(display)
        try:
            display.begin()
            yield
        finally:
            display.end()
            _SHOWN.reset(token)


@contextmanager
def hold_stages() -> Iterator[None]:
    """While something runs, say nothing of stages: what it writes stays whole."""
    display = _SHOWN.get()
    if display is None:
        yield
        return
    display.end()
    try:
        yield
    finally:
        display.begin()


class _StageDisplay:
    """A thread that says which stage some work is in; once it has ended, its line is gone."""

    def __init__(self, stages: list[Stage]) -> None:
        self._stages = stages
        self._show = _rewrite_line if sys.stderr.isatty() else _write_lines
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Say it from now on."""
        self._done.clear()
        given = (self._stages, self._done)
        self._thread = threading.Thread(target=self._show, args=given, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Say no more."""
        self._done.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None


_SHOWN: ContextVar[_StageDisplay | None] = ContextVar("shown_stages", default=None)


def _text(stages: list[Stage], began: float) -> str | None:
    current = stages[-1:]  # a copy: the work goes on meanwhile
    return f"{current[0]}, {time.monotonic() - began:.0f} s" if current else None


def _rewrite_line(stages: list[Stage], done: threading.Event) -> None:
    began, width = time.monotonic(), 0
    wait = _QUIET_SECONDS
    while not done.wait(wait):
        wait = _TICK_SECONDS
        text = _text(stages, began)
        if text is None:  # between two stages others may write
            width = _clear_line(width)
            continue
        width = max(width, len(text))
        echo_as_is(f"\r{text.ljust(width)}", err=True, nl=False)
    _clear_line(width)


def _clear_line(width: int) -> int:
    """Take a line of so many characters away; nothing is left of it."""
    if width:
        echo_as_is(f"\r{' ' * width}\r", err=True, nl=False)
    return 0


def _write_lines(stages: list[Stage], done: threading.Event) -> None:
    began, spent = time.monotonic(), time.process_time()
    last, due = "", 0.0
    wait = _UNWATCHED_SECONDS
    while not done.wait(wait):
        wait = _TICK_SECONDS
        # Work of two seconds, however long a busy machine takes for less.
        if time.process_time() - spent < _LEAST_WORK * _UNWATCHED_SECONDS:
            continue
        now, current = time.monotonic(), stages[-1:]  # a copy: the work goes on meanwhile
        if not current or (current[0].what == last and now < due):
            continue
        is_new = current[0].what != last and not current[0].is_begun
        last, due = current[0].what, now + (_COUNT_SECONDS if is_new else _REPEAT_SECONDS)
        text = last if is_new else str(current[0])
        echo_as_is(f"{text}, {now - began:.0f} s", err=True)

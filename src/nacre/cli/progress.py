"""How far a long piece of work is, where somebody watches."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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

    def __call__(self, taken: int, total: int) -> None:
        """So many steps of so many have been taken."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + _TICK_SECONDS
        text = f"{taken:,} of {total:,} {self._what} ({100 * taken // max(total, 1)} %)"
        self._width = max(self._width, len(text))
        echo_as_is(f"\r{text.ljust(self._width)}", err=True, nl=False)

    def clear(self) -> None:
        """Take the line away."""
        if self._width:
            echo_as_is(f"\r{' ' * self._width}\r", err=True, nl=False)


@contextmanager
def watched(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A progress line while something runs; None where nobody watches."""
    progress = Progress(what)
    try:
        yield progress if progress.is_wanted else None
    finally:
        progress.clear()

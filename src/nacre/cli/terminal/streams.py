"""The one way out: whatever a verb prints passes here, and names from files drive no terminal.

The filter sits on the streams and not at the calls, so no call can forget it. It knows characters,
not names: a line feed ends a line, so names still go through `safe` where they are put into one.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import click

from nacre.base.excerpt import safe


class HarmlessStream(io.TextIOBase):
    """A text stream that shows control characters, and whose reader may go away at any time."""

    def __init__(self, stream: TextIO, *, is_filtered: bool = True) -> None:
        self.stream = stream
        self._is_filtered = is_filtered

    # Without `buffer`, on purpose: libraries would go around the filter.

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """As of the stream behind it."""
        return self.stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        """As of the stream behind it."""
        return self.stream.errors

    def write(self, text: str) -> int:
        """Write text, its control characters made visible."""
        try:
            self.stream.write(make_harmless(text) if self._is_filtered else text)
        except BrokenPipeError:
            self._forget()
        return len(text)

    def flush(self) -> None:
        """Pass on what was written."""
        try:
            self.stream.flush()
        except BrokenPipeError:
            self._forget()

    def _forget(self) -> None:
        """The reader went away (`nacre check | head -1`): the verb ends as it would have ended."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.stream.fileno())

    def fileno(self) -> int:
        """As of the stream behind it."""
        return self.stream.fileno()

    def isatty(self) -> bool:
        """Whether somebody watches."""
        return self.stream.isatty()

    def writable(self) -> bool:
        """It is."""
        return True


def make_harmless(text: str) -> str:
    """Text with every control character but the ends of its lines made visible."""
    if text.replace("\n", "").isprintable():
        return text
    return "\n".join(map(safe, text.split("\n")))


@contextmanager
def filter_output() -> Iterator[None]:
    """Standard output and standard error behind the filter."""
    usual = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (
        None if stream is None else HarmlessStream(stream) for stream in usual
    )
    try:
        yield
    finally:
        sys.stdout, sys.stderr = usual


def unfiltered_stream(*, err: bool = False) -> TextIO | None:
    """A stream for what is ours alone: colours and lines that are drawn over. None: it is closed.

    Text from a file that goes there must have been through `safe`.
    """
    stream = sys.stderr if err else sys.stdout
    if not isinstance(stream, HarmlessStream):
        return stream
    return HarmlessStream(stream.stream, is_filtered=False)  # type: ignore[return-value]


def echo_as_is(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print what is ours alone: see `unfiltered_stream`."""
    stream = unfiltered_stream(err=err)
    if stream is not None:
        stream.write(text + "\n" * nl)
        stream.flush()


def echo_bytes(data: bytes) -> None:
    """Write bytes that another program reads to standard output; a terminal gets none of them."""
    stream = unfiltered_stream()
    if stream is None:
        return
    if stream.isatty():
        raise click.UsageError("these are bytes, no text, and standard output is a terminal")
    behind = stream.stream if isinstance(stream, HarmlessStream) else stream
    try:
        behind.flush()
        behind.buffer.write(data)
    except BrokenPipeError:
        stream.flush()


def echo_document(text: str) -> None:
    """Print a text that another program reads: to the letter, unless a terminal would read it."""
    if sys.stdout is None:
        return
    if sys.stdout.isatty():
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        echo_as_is(text, nl=False)

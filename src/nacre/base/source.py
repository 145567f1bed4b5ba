"""Source text, places in it, and how a file from a stranger is read safely."""

from __future__ import annotations

import codecs
import mmap
import os
import re
import stat
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, Literal, TypeVar

# A program of a million lines is about 60 MB; more than that is not a program but an accident or
# an attack, and reading it would cost seconds before the first useful word.
MAX_SOURCE_BYTES = 64 * 1024 * 1024
_CHUNK_BYTES = 1 << 16
_LONE_RETURN = re.compile(r"\r(?!\n)")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Location:
    """A place as people read it: lines and columns count from 1, the end is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, eq=False)
class Source:
    """A named text. `path` is None for text that did not come from a file."""

    name: str
    text: str = field(repr=False)
    path: Path | None = None
    is_shown: bool = True  # a file that is no text has places, but no lines to show

    @property
    def size(self) -> int:
        """How many characters the text has."""
        return len(self.text)

    @cached_property
    def lined_text(self) -> str:
        """The text with a line feed where any line ends, also one that ends in CR alone.

        Offsets are those of the text.
        """
        return _LONE_RETURN.sub("\n", self.text) if "\r" in self.text else self.text

    @cached_property
    def line_starts(self) -> list[int]:
        """Offset of the first character of every line; LF, CR LF and CR end one."""
        starts = [0]
        find = self.lined_text.find
        at = find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = find("\n", at + 1)
        return starts

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1, of the character at `offset`."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def line_text(self, line: int) -> str:
        """The text of a line (from 1) without its line ending."""
        starts = self.line_starts
        end = starts[line] if line < len(starts) else len(self.text)
        return self.text[starts[line - 1] : end].rstrip("\r\n")

    def span(self, start: int, end: int) -> Span:
        """The place from `start` up to, not including, `end`."""
        return Span(self, start, end)


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a source: `start` up to, not including, `end`."""

    source: Source
    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end <= self.source.size:
            raise ValueError(f"span [{self.start}, {self.end}) is outside {self.source.name}")

    @property
    def location(self) -> Location:
        """The same place in lines and columns."""
        line, column = self.source.position(self.start)
        end_line, end_column = self.source.position(self.end)
        return Location(self.source.name, line, column, end_line, end_column)


def whole_file(name: str) -> Span:
    """The place of what is wrong with a file as a whole, which may be no text."""
    return Source(name, "", is_shown=False).span(0, 0)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why a file could not become a source; `span` is where in it the trouble starts."""

    reason: str
    kind: Literal["missing", "not a file", "denied", "too large", "not text"]
    span: Span | None = None


def read_source(
    path: Path, *, name: str | None = None, limit: int = MAX_SOURCE_BYTES
) -> Source | Unreadable:
    """Read a UTF-8 file, or say why not. Never blocks on a FIFO, never reads more than `limit`."""
    raw = read_bytes(path, limit=limit)
    if isinstance(raw, Unreadable):
        return raw
    return decode_source(raw, name=name if name is not None else str(path), path=path)


def decode_source(raw: bytes, *, name: str, path: Path | None = None) -> Source | Unreadable:
    """Turn bytes into a source; a byte order mark is dropped."""
    mark = len(codecs.BOM_UTF8) if raw.startswith(codecs.BOM_UTF8) else 0
    try:
        text = raw[mark:].decode("utf-8")
    except UnicodeDecodeError as error:
        offset = mark + error.start
        at = len(raw[mark:offset].decode("utf-8"))
        readable = Source(name, raw[mark:].decode("utf-8", "replace"), path)
        reason = f"byte 0x{raw[offset]:02x} at offset {offset} is not UTF-8"
        return Unreadable(reason, "not text", readable.span(at, at + 1))
    source = Source(name, text, path)
    if (at := text.find("\0")) >= 0:
        reason = f"character {at} is NUL: this is a binary file"
        return Unreadable(reason, "not text", source.span(at, at + 1))
    return source


def read_bytes(path: Path, *, limit: int = MAX_SOURCE_BYTES) -> bytes | Unreadable:
    """Read a regular file of at most `limit` bytes, or say why not."""

    def read(handle: int, size: int) -> bytes | Unreadable:
        if size > limit:
            return _too_large(size, limit)
        with os.fdopen(handle, "rb", closefd=False) as file:
            raw = read_stream(file, limit, size)
        return raw if len(raw) <= limit else _too_large(len(raw), limit)

    return _with_regular_file(path, read)


def map_bytes(path: Path) -> memoryview | Unreadable:
    """The bytes of a regular file, of which none is read before it is looked at, or why not."""

    def view(handle: int, size: int) -> memoryview:
        if not size:  # which cannot be mapped
            return memoryview(b"")
        return memoryview(mmap.mmap(handle, 0, access=mmap.ACCESS_READ))

    return _with_regular_file(path, view)


def _with_regular_file(path: Path, use: Callable[[int, int], T]) -> T | Unreadable:
    """What `use` makes of an open file and its size."""
    try:
        # O_NONBLOCK: opening a FIFO that nobody writes to would wait for ever.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as error:
        return _unreadable(error)
    try:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode):
            return Unreadable(f"is {_file_kind(state.st_mode)}, not a file", "not a file")
        return use(handle, state.st_size)
    except OSError as error:
        return _unreadable(error)
    finally:
        os.close(handle)


def read_stream(file: BinaryIO, limit: int, expected: int = 0) -> bytes:
    """What is left of a stream, as far as `limit` and a byte more.

    A read of many bytes sets them aside at once, whatever the stream has: none here is of more than
    is expected, or than the stream has given so far.
    """
    parts = [file.read(min(expected, limit) + 1)]
    size = len(parts[0])
    while size <= limit:
        part = file.read(min(max(size, _CHUNK_BYTES), limit + 1 - size))
        if not part:
            break
        parts.append(part)
        size += len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(size: int, limit: int) -> Unreadable:
    reason = f"has {size:,} bytes or more; the limit is {limit:,}"
    return Unreadable(reason, "too large")


def _unreadable(error: OSError | ValueError) -> Unreadable:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return Unreadable("does not exist", "missing")
    if isinstance(error, IsADirectoryError):
        return Unreadable("is a directory, not a file", "not a file")
    if isinstance(error, PermissionError):
        return Unreadable("may not be read (permission denied)", "denied")
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return Unreadable(f"cannot be read ({reason.lower()})", "missing")


def _file_kind(mode: int) -> str:
    kinds = {
        stat.S_IFDIR: "a directory",
        stat.S_IFIFO: "a FIFO",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a character device",
        stat.S_IFBLK: "a block device",
    }
    return kinds.get(stat.S_IFMT(mode), "a special file")

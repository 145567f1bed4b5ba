"""Files named where a program is expected: texts, or bytecode.

What reads bytecode is loaded when there is some: start-up is for texts.
"""

from __future__ import annotations

from pathlib import Path

from nacre.base.source import MAX_SOURCE_BYTES, Source, Unreadable, decode_source, read_bytes
from nacre.nem.bytecode.magic import MAGIC_START, SUFFIX
from nacre.nem.syntax.parser import ParsedSource


def decode_program(raw: bytes, *, name: str, path: Path | None = None) -> Source | Unreadable:
    """Turn bytes into a source: bytecode, or text."""
    is_bytecode = raw.startswith(MAGIC_START) or (path is not None and path.suffix == SUFFIX)
    return _open(raw, name, path) if is_bytecode else decode_source(raw, name=name, path=path)


def read_program(path: Path, *, name: str | None = None) -> Source | Unreadable:
    """Read a file of text or bytecode, or a document in one (`lib.nemb/conv.nem`)."""
    raw = read_bytes(path, limit=MAX_SOURCE_BYTES)
    if not isinstance(raw, Unreadable):
        return decode_program(raw, name=name if name is not None else str(path), path=path)
    file = file_around(path)
    data = raw if file is None else read_bytes(file, limit=MAX_SOURCE_BYTES)
    if file is None or isinstance(data, Unreadable):
        return raw
    member = path.relative_to(file).as_posix()
    shown = str(file) if name is None else name.removesuffix(member).rstrip("/") or str(file)
    return _open(data, shown, file, member)


def file_around(path: Path) -> Path | None:
    """The bytecode that a path leads into: of names within names, the one that is a file."""
    named = [parent for parent in path.parents if parent.suffix == SUFFIX]
    return next((parent for parent in named if parent.is_file()), named[0] if named else None)


def _open(data: bytes, name: str, path: Path | None, member: str = "") -> ParsedSource:
    from nacre.nem.bytecode.library import bytecode_source

    return bytecode_source(data, name, path, member)

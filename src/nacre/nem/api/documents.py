"""Documents without running them: check and format."""

from __future__ import annotations

from pathlib import Path

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.source import Source, Unreadable
from nacre.nem.bytecode.sources import read_program
from nacre.nem.checks.engine import CheckOptions, check_source
from nacre.nem.model.files import unreadable_finding
from nacre.nem.model.imports import Import, Imports, as_imports
from nacre.nem.model.target import UnknownDeviceError
from nacre.nem.run.memory.host import host_error
from nacre.nem.spec.rules.includes import DVD01
from nacre.nem.syntax.formatter import format_source

TEXT_NAME = "<text>"


def check(
    path_or_text: str | Path,
    device: str | None = None,
    strict: bool = False,
    imports: Imports = (),
) -> list[Diagnostic]:
    """Every finding in a NEM document, in order.

    A Path is a file, a text or bytecode. So is a string that ends in `.nem` or `.nemb`, or names an
    existing file; any other
    string is the text itself, whose includes are looked for in the working folder. A `device`
    that does not exist raises InputError. `imports` are buffers whose contents the host provides:
    `["W", "X:mutable", "Y:mutable:noalias"]`.
    """
    if not isinstance(path_or_text, str | Path):
        raise TypeError(f"check takes a str or a Path, found {type(path_or_text).__name__}")
    source = source_of(path_or_text)
    if isinstance(source, Diagnostic):
        return [source]
    try:
        marks = host_imports(imports)
        checked = check_source(source, CheckOptions(device=device, strict=strict, imports=marks))
    except UnknownDeviceError as error:
        raise InputError([DVD01.at(source.span(0, 0), str(error))]) from None
    return list(checked.diagnostics)


def host_imports(imports: Imports) -> tuple[Import, ...]:
    """The imports that a caller gives; InputError for what is none."""
    try:
        return as_imports(imports)
    except (TypeError, ValueError) as error:
        raise host_error(f"imports: {error}") from None


def format(text: str) -> str:
    """The canonical form of a NEM text; raises InputError when it does not follow the grammar."""
    return format_source(Source(TEXT_NAME, require_text("format", text)))


def pack(text: str) -> bytes:
    """A NEM text as bytecode; raises InputError when it does not follow the grammar.

    Comments stay, and so do the places of everything where the text is not canonical.
    """
    from nacre.nem.bytecode.packing import pack as packed

    return packed(require_text("pack", text))


def unpack(data: bytes | bytearray | memoryview) -> str:
    """The canonical text of bytecode; raises InputError for bytes that are none."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"unpack takes bytecode as bytes, found {type(data).__name__}")
    from nacre.nem.bytecode.packing import unpack as unpacked

    return unpacked(bytes(data))


def require_text(function: str, text: object) -> str:
    """The text that a function was called with; TypeError for anything else, a Path included."""
    if not isinstance(text, str):
        raise TypeError(f"{function} takes a text as str, found {type(text).__name__}")
    return text


def source_of(path_or_text: str | Path) -> Source | Diagnostic:
    """The source that an argument means, or why it cannot be read."""
    if isinstance(path_or_text, str) and not _is_path(path_or_text):
        return Source(TEXT_NAME, path_or_text)
    path = Path(path_or_text)
    source = read_program(path)
    return unreadable_finding(str(path), path, source) if isinstance(source, Unreadable) else source


def _is_path(text: str) -> bool:
    if not text or "\n" in text or "\0" in text or len(text) > 4096:
        return False
    if text.endswith((".nem", ".nemb", ".cfg")) and '"' not in text:
        return True
    try:
        return Path(text).exists()
    except OSError:
        return False


__all__ = ["InputError", "check", "format", "pack", "unpack"]

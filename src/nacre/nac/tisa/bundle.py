"""A manifest and its vocabulary in one piece: the sections PROC and RSRC as a `.nac` file has them.

A manifest alone, which begins with `TISA`, is taken too; its vocabulary then comes from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from nacre.base.diagnostics import InputError
from nacre.base.rules import Rule
from nacre.nac.format.cursor import Broken, Cursor
from nacre.nac.format.packing import pack, text
from nacre.nac.format.positions import BinarySource, Position, finding
from nacre.nac.rules.container import NAC05, NAC14
from nacre.nac.rules.tokenizer import NAC60
from nacre.nac.tisa.instructions import MAGIC

_PROC, _RSRC = b"PROC", b"RSRC"
NAME = "<tokenizer>"


@dataclass(frozen=True)
class Bundle:
    """A manifest, and files by their names."""

    manifest: bytes
    resources: Mapping[str, bytes] = field(default_factory=dict)


def join(manifest: bytes, resources: Mapping[str, bytes]) -> bytes:
    """One piece: the section PROC, then the section RSRC."""
    parts = [_PROC, pack("I", "length", len(manifest)), manifest]
    parts += [_RSRC, pack("I", "length", len(resources))]
    for name, data in resources.items():
        parts += [text(name, "H", "the name of a resource"), pack("I", "length", len(data)), data]
    return b"".join(parts)


def split(raw: bytes) -> Bundle:
    """The manifest and the files of one piece; InputError where it is malformed."""
    with broken_as_input_error(len(raw)):
        return _split(raw)


def _split(raw: bytes) -> Bundle:
    if raw.startswith(MAGIC):
        return Bundle(raw)
    cursor = Cursor(memoryview(raw), "PROC")
    if bytes(cursor.take(4, "the tag of a section")) != _PROC:
        message = f"the bytes begin with {raw[:4]!r}, neither with {MAGIC!r} nor with {_PROC!r}"
        raise Broken(NAC60, cursor.position(0), message)
    manifest = bytes(cursor.take(cursor.u32("the length of the manifest"), "the manifest"))
    if not cursor.remaining:
        return Bundle(manifest)
    start = cursor.at
    if bytes(cursor.take(4, "the tag of a section")) != _RSRC:
        raise Broken(NAC05, Position(start, "RSRC"), f"behind the manifest stands no {_RSRC!r}")
    files: dict[str, bytes] = {}
    count = cursor.u32("the number of resources")
    for _ in range(min(count, cursor.remaining)):
        name = cursor.text(cursor.u16("the length of a name"), "the name of a resource")
        data = bytes(cursor.take(cursor.u32("the length of a resource"), f"`{name}`"))
        if name in files:
            raise Broken(NAC14, Position(start, "RSRC"), f"resource `{name}` is defined twice")
        files[name] = data
    if len(files) < count or cursor.remaining:
        message = f"{len(files)} of {count} resources, and {cursor.remaining} bytes behind them"
        raise Broken(NAC05, Position(cursor.at, "RSRC"), message)
    return Bundle(manifest, files)


@contextmanager
def broken_as_input_error(size: int, name: str = NAME) -> Iterator[None]:
    """Let what is broken become what users see."""
    try:
        yield
    except Broken as problem:
        source = BinarySource(name, size)
        made = finding(problem.rule, source, problem.position, problem.message, problem.help)
        raise InputError([made]) from None


def refusal(rule: Rule, message: str, help: str | None = None, name: str = NAME) -> InputError:
    """A finding that has no place among bytes."""
    span = BinarySource(name, 0).span(0, 0)
    return InputError([rule.at(span, message, help=help)])

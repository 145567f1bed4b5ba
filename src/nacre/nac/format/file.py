"""A whole file: read with everything that is wrong with it, written as it was."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from nacre.base.diagnostics import Diagnostic, InputError, has_errors, in_order
from nacre.base.files import write_whole
from nacre.base.lazy import load_all
from nacre.base.source import Source, Unreadable, map_bytes, whole_file
from nacre.nac.format import header
from nacre.nac.format.cursor import Broken, Cursor
from nacre.nac.format.positions import BinarySource, Position
from nacre.nac.format.reading import CODECS, ReadContext
from nacre.nac.format.sections import data, opaque
from nacre.nac.format.values import Bytes, Header, NacFile
from nacre.nac.rules.container import NAC01, NAC05, NAC06, NAC07, NAC08, NAC11
from nacre.nac.spec.header import SECTIONS

_TAG_BYTES = 4


load_all("nacre.nac.format.sections")

FileSource = str | os.PathLike[str] | Bytes  # a path, or the bytes themselves


@dataclass(frozen=True)
class ReadResult:
    """What can be read of a file, and all that is wrong with its structure."""

    file: NacFile | None  # None: not even the header can be read
    findings: list[Diagnostic]
    source: Source
    lost: frozenset[str] = frozenset()  # sections that are there and cannot be read


def read(source: FileSource, name: str | None = None) -> NacFile:
    """A file, or its bytes, as values; InputError has all that is wrong with its structure."""
    made = examine(source, name)
    if made.file is None or has_errors(made.findings):
        raise InputError(in_order(made.findings))
    return made.file


def examine(source: FileSource, name: str | None = None) -> ReadResult:
    """What can be read of a file, and all that is wrong with its structure."""
    if isinstance(source, bytes | memoryview):
        view, title = memoryview(source), name or "<bytes>"
    else:
        title = name or os.fspath(source)
        try:
            view = map_file(Path(source))
        except Broken as problem:
            place = whole_file(title)
            diagnostic = problem.rule.at(place, f"the file {problem.message}")
            return ReadResult(None, [diagnostic], place.source)
    return _examine_bytes(view, title)


def map_file(path: Path) -> memoryview:
    """The bytes of a file, of which none is read before it is looked at."""
    view = map_bytes(path)
    if isinstance(view, Unreadable):
        raise Broken(NAC01, Position(0), view.reason)
    return view


def _examine_bytes(view: memoryview, title: str) -> ReadResult:
    reading = ReadContext(BinarySource(title, len(view)), Header())
    try:
        reading.header, offsets = header.read(view)
    except Broken as problem:
        reading.report_broken(problem)
        return ReadResult(None, reading.findings, reading.source)
    starts = _section_starts(view, reading, offsets)
    if "OPS " not in offsets:
        reading.report(NAC08, Position(0), "the file has no section OPS")
        reading.lost.add("OPS ")
    if "PERM" not in offsets:
        reading.signatures = {}
    sections, ends = _sections(view, reading, starts)
    reading.lost |= offsets.keys() - sections.keys()
    gaps = _gaps(view, reading, starts, ends)
    ordered = {tag: sections[tag] for tag in starts if tag in sections}
    file = NacFile(reading.header, ordered, gaps, reading.record_offsets)
    return ReadResult(file, reading.findings, reading.source, frozenset(reading.lost))


def _section_starts(
    view: memoryview, reading: ReadContext, offsets: Mapping[str, int]
) -> dict[str, int]:
    """Where sections begin, in the order of the file; those that cannot are reported."""
    starts: dict[str, int] = {}
    size = reading.header.rules.size
    for tag, offset in sorted(offsets.items(), key=lambda item: item[1]):
        name, place = tag.strip(), Position(min(offset, len(view)), tag)
        if not size <= offset <= len(view) - _TAG_BYTES:
            message = (
                f"{name} begins at byte {offset:,}, expected {size} to {len(view) - _TAG_BYTES:,}"
            )
            reading.report(NAC06, place, message)
        elif offset in starts.values():
            reading.report(NAC06, place, f"{name} begins where another section does")
        elif bytes(view[offset : offset + _TAG_BYTES]) != tag.encode():
            actual_tag = bytes(view[offset : offset + _TAG_BYTES])
            reading.report(NAC05, place, f"the tag is {actual_tag!r}, expected {tag.encode()!r}")
        else:
            starts[tag] = offset
    return starts


def _sections(
    view: memoryview, reading: ReadContext, starts: dict[str, int]
) -> tuple[dict[str, Any], dict[str, int]]:
    """The sections that can be read, and where each ends."""
    sections: dict[str, Any] = {}
    ends: dict[str, int] = {}
    order = list(starts)
    # PERM comes before OPS, whose instructions are as long as their signatures say.
    for tag in sorted(SECTIONS, key=lambda tag: tag != "PERM"):
        if tag not in starts or (tag == "OPS " and reading.signatures is None):
            continue
        read_section = CODECS.registered[tag].read
        following = order.index(tag) + 1
        limit = starts[order[following]] if following < len(order) else len(view)
        whole = view[:limit] if read_section is opaque.read else view
        cursor = Cursor(whole, tag, starts[tag] + _TAG_BYTES)
        try:
            sections[tag] = read_section(cursor, reading)
        except Broken as problem:
            reading.report_broken(problem)
            continue
        ends[tag] = cursor.at
        reading.record_offsets.setdefault(tag, (starts[tag],))  # of a section without records
        if cursor.at > limit:
            other = order[following].strip()
            message = f"{tag.strip()} ends at byte {cursor.at:,}, {other} begins before"
            reading.report(NAC07, Position(starts[tag], tag), message)
        if tag == "PERM":
            reading.signatures = {named.id: named.text for named in sections[tag]}
    return sections, ends


def _gaps(
    view: memoryview, reading: ReadContext, starts: dict[str, int], ends: dict[str, int]
) -> dict[str, Bytes]:
    """Bytes that belong to no section."""
    gaps: dict[str, Bytes] = {}
    end: int | None = reading.header.rules.size
    for tag, start in (*starts.items(), ("", len(view))):
        if end is not None and start > end:
            gaps[tag] = view[end:start]
            if not reading.lost:  # they would be those of a section that cannot be read
                message = f"{start - end:,} bytes belong to no section"
                reading.report(NAC11, Position(end), message)
        end = ends.get(tag)
    return gaps


def parts(file: NacFile) -> Iterator[Bytes]:
    """The bytes of a file, in parts: weights are not copied."""
    bodies = {tag: _section_parts(file, tag) for tag in file.sections}
    offsets: dict[str, int] = {}
    at = file.header.rules.size
    for tag, body in bodies.items():
        at += len(file.gaps.get(tag, b""))
        offsets[tag] = at
        at += _TAG_BYTES + sum(len(part) for part in body)
    yield header.write(file.header, offsets)
    for tag, body in bodies.items():
        yield file.gaps.get(tag, b"")
        yield tag.encode()
        yield from body
    yield file.gaps.get("", b"")


def _section_parts(file: NacFile, tag: str) -> list[Bytes]:
    content = file.sections[tag]
    write_section = CODECS.registered[tag].write
    if write_section is None:
        return list(data.write(content, file.header.is_internal))
    made = write_section(content)
    return [made] if isinstance(made, bytes | memoryview) else list(made)


def to_bytes(file: NacFile) -> bytes:
    """The bytes of a file."""
    return b"".join(parts(file))


def write(file: NacFile, path: str | os.PathLike[str]) -> None:
    """Write a file, whole or not at all; InputError where a value has no place in its field."""
    made = list(parts(file))  # a limit is found before anything is written
    write_whole(Path(path), cast("list[bytes]", made))

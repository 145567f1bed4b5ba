"""The file around documents: its head, a table of sections, a checksum at the end."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nacre.base.binary.cursor import Broken, ByteReader, ByteRules, ByteWriter
from nacre.base.excerpt import backquote
from nacre.base.source import Unreadable, decode_source
from nacre.nem.bytecode.document import COMMENTS, POSITIONS, SECTIONS, TEXTS, TREE
from nacre.nem.bytecode.magic import MAGIC, MAGIC_START, SUFFIX
from nacre.nem.spec.limits import (
    MAX_BYTECODE_CHARACTERS_PER_NODE,
    MAX_BYTECODE_DOCUMENTS,
    MAX_BYTECODE_NODES,
    MAX_BYTECODE_NODES_PER_BYTE,
    MAX_BYTECODE_TEXT,
    MIN_BYTECODE_NODES,
)
from nacre.nem.spec.rules.bytecode import BYT01, BYT02, BYT03, BYT04, BYT06, BYT07

VERSION: Final = 1
# What a reader must know to understand a file. Bits are never used again.
FEATURES: Final = ("comments", "positions", "library", "compressed")
_COMMENTS, _POSITIONS, _LIBRARY, _COMPRESSED = (1 << bit for bit in range(4))
_CHECKSUM = 4
_RULES = ByteRules(
    damaged=BYT01,
    not_canonical=BYT06,
    too_large=BYT07,
    too_large_help="write what repeats as a `loop`",
)
_MOST_NAME = 4096
_MOST_FEATURE = 64
_ENTRY = 1  # a document that was packed for itself, not for those that include it
_HAS_COMPRESSED = 2  # a document with compressed regions


@dataclass(frozen=True, slots=True)
class Member:
    """A document in a file: what it is called there, and its sections."""

    name: str
    is_entry: bool
    sections: Mapping[int, bytes]
    has_compressed: bool = False  # regions that say so


@dataclass(frozen=True, slots=True)
class Entry:
    """A document as the table has it: where its sections lie."""

    name: str
    is_entry: bool
    sections: Mapping[int, ByteReader]
    has_compressed: bool = False


def write_file(members: Sequence[Member]) -> bytes:
    """A whole file."""
    head, body = ByteWriter(), ByteWriter()
    head.raw(MAGIC)
    head.varint(VERSION)
    features = _features(members)
    head.varint(features)
    for bit, name in enumerate(FEATURES):
        if features >> bit & 1:
            head.text(name)
    head.varint(len(members))
    for member in members:
        head.text(member.name)
        head.varint(_ENTRY * member.is_entry + _HAS_COMPRESSED * member.has_compressed)
        head.varint(len(member.sections))
        for tag, content in sorted(member.sections.items()):
            head.varint(tag)
            head.varint(len(content))
            body.raw(content)
    made = head.content() + body.content()
    return made + zlib.crc32(made).to_bytes(_CHECKSUM, "little")


def _features(documents: Sequence[Member] | Sequence[Entry]) -> int:
    made = _LIBRARY if len(documents) > 1 else 0
    made |= _COMMENTS if any(COMMENTS in found.sections for found in documents) else 0
    made |= _POSITIONS if any(POSITIONS in found.sections for found in documents) else 0
    made |= _COMPRESSED if any(found.has_compressed for found in documents) else 0
    return made


def read_file(data: bytes) -> list[Entry]:
    """The documents of a file, as its table names them."""
    reader = ByteReader(data, _RULES)
    if data[: len(MAGIC)] != MAGIC:
        raise Broken(BYT02, 0, *_other_form(data))
    reader.at = len(MAGIC)
    version = reader.varint("the version")
    if version != VERSION:
        help_ = "take a newer nacre, or pack the program again"
        raise Broken(BYT02, len(MAGIC), f"version {version:,}; this reader knows 1", help_)
    features = _read_features(reader)
    if len(data) - reader.at < _CHECKSUM:
        raise Broken(BYT01, reader.at, "the file ends before its checksum")
    reader.end -= _CHECKSUM
    if zlib.crc32(data[: reader.end]).to_bytes(_CHECKSUM, "little") != data[reader.end :]:
        raise Broken(BYT01, reader.end, "the checksum is that of other bytes: the file is damaged")
    entries = _read_table(reader)
    if features != _features(entries):
        raise Broken(BYT06, len(MAGIC) + 1, "the features are not those of the documents")
    return entries


def _other_form(data: bytes) -> tuple[str, str | None]:
    """What bytes are that do not begin as bytecode does, and what to do about it."""
    if data.startswith(MAGIC_START):
        help_ = "line ends were changed on its way: copy it as binary"
        return "this was bytecode of NEM, and was copied as a text", help_
    if not data:
        return "the file is empty, which no bytecode is", None
    if not isinstance(decode_source(data, name=""), Unreadable):
        help_ = f"texts have names in `.nem`: rename it, or `nacre pack` it to a `{SUFFIX}` file"
        return "this is a text, no bytecode of NEM", help_
    return "this is no bytecode of NEM", None


def _read_features(reader: ByteReader) -> int:
    start = reader.at
    bits = reader.varint("the features")
    unknown = []
    for bit in range(bits.bit_length()):
        if bits >> bit & 1:
            name = reader.text("a feature", _MOST_FEATURE)
            if bit >= len(FEATURES):
                unknown.append(backquote(name))
            elif FEATURES[bit] != name:
                message = f"feature {bit} is called {backquote(name)}, not `{FEATURES[bit]}`"
                raise Broken(BYT03, start, message)
    if unknown:
        help_ = "take a newer nacre, or pack the program without them"
        raise Broken(BYT03, start, f"unknown features: {', '.join(unknown)}", help_)
    return bits


def _read_table(reader: ByteReader) -> list[Entry]:
    start = reader.at
    count = reader.varint("the number of documents")
    if not 0 < count <= MAX_BYTECODE_DOCUMENTS:
        message = f"{count:,} documents; a file has 1 to {MAX_BYTECODE_DOCUMENTS:,}"
        raise Broken(BYT07, start, message)
    rows = [_read_row(reader, count > 1) for _ in range(count)]
    names = [name for name, _, _, _ in rows]
    if len(set(names)) < len(names):
        raise Broken(BYT04, start, "two documents have one name")
    if not rows[0][1]:
        raise Broken(BYT04, start, "the first document is not there for itself")
    entries = [
        Entry(
            name,
            is_entry,
            _sections(reader, sizes, count),
            has_compressed,
        )
        for name, is_entry, has_compressed, sizes in rows
    ]
    reader.require_end("the last section")
    return entries


def _read_row(reader: ByteReader, is_named: bool) -> tuple[str, bool, bool, dict[int, int]]:
    start = reader.at
    name = reader.text("a document's name", _MOST_NAME)
    flags = reader.varint("a document's flags")
    if flags > _ENTRY + _HAS_COMPRESSED or (not name and is_named) or not _is_plain(name):
        raise Broken(BYT04, start, f"{backquote(name)} is no entry of a table")
    sizes: dict[int, int] = {}
    for _ in range(reader.varint("the number of sections")):
        tag = reader.varint("a section's tag")
        if tag not in SECTIONS or tag <= max(sizes, default=0):
            raise Broken(BYT04, start, f"section {tag:,} is unknown or out of order")
        sizes[tag] = reader.varint("a section's size")
    if not {TEXTS, TREE} <= sizes.keys():
        raise Broken(BYT04, start, "a document has no tree")
    return name, bool(flags & _ENTRY), bool(flags & _HAS_COMPRESSED), sizes


def _is_plain(name: str) -> bool:
    """Whether a name is a path below where it is used, written in one way only."""
    if not name:
        return True
    is_odd = any(part in ("", ".", "..") for part in name.split("/"))
    return not is_odd and not any(mark in name for mark in "\\\0\n\r:")


def _sections(
    reader: ByteReader, sizes: Mapping[int, int], documents: int
) -> dict[int, ByteReader]:
    sections = {tag: _section(reader, size) for tag, size in sizes.items()}
    for section in sections.values():
        section.most = _most_nodes(sum(sizes.values()), documents)
        section.most_text = min(section.most * MAX_BYTECODE_CHARACTERS_PER_NODE, MAX_BYTECODE_TEXT)
    return sections


def _most_nodes(size_bytes: int, documents: int) -> int:
    """How many nodes a document of so many bytes may have, in a file of so many documents."""
    grown = size_bytes * MAX_BYTECODE_NODES_PER_BYTE + MIN_BYTECODE_NODES // documents
    return min(grown, MAX_BYTECODE_NODES)


def _section(reader: ByteReader, size: int) -> ByteReader:
    if size > reader.left:
        message = f"a section has {size:,} bytes, {reader.left:,} are left"
        raise Broken(BYT01, reader.at, message)
    return reader.within(size)

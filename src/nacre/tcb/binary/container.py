"""The file around sections: its head, and a table with their sizes and checksums."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Final

from nacre.base.binary.cursor import Broken, ByteReader, ByteWriter
from nacre.base.excerpt import backquote
from nacre.tcb.block_table import FEATURES
from nacre.tcb.limits import MAX_ITEMS, MAX_PER_BYTE, MAX_TEXT_BYTES, MIN_ITEMS
from nacre.tcb.rules.binary import BYTE_RULES, TCB10, TCB11, TCB12, TCB13

MAGIC: Final = b"\x89TCB\r\n\x1a\n"
VERSION: Final = 1
HEADER, STREAMS, CONSTANTS, ORIGINS = range(1, 5)
SECTIONS: Final = {
    HEADER: "header",
    STREAMS: "streams",
    CONSTANTS: "constants",
    ORIGINS: "origins",
}
_CHECKSUM = 4
_MOST_FEATURE = 64
_CHARACTERS = 16  # of text for each thing that bytes may stand for


def checksum(data: bytes) -> bytes:
    """CRC-32, the lowest byte first."""
    return zlib.crc32(data).to_bytes(_CHECKSUM, "little")


def write_file(sections: Mapping[int, bytes], features: frozenset[str]) -> bytes:
    """A whole file."""
    head = ByteWriter()
    head.raw(MAGIC)
    head.varint(VERSION)
    head.varint(sum(1 << bit for bit, name in enumerate(FEATURES) if name in features))
    for name in FEATURES:
        if name in features:
            head.text(name)
    head.varint(len(sections))
    for tag, content in sorted(sections.items()):
        head.varint(tag)
        head.varint(len(content))
        head.raw(checksum(content))
    made = head.content()
    return b"".join([made, checksum(made), *(sections[tag] for tag in sorted(sections))])


def most_items(size_bytes: int) -> int:
    """How many things of one kind a section of so many bytes may stand for."""
    return min(size_bytes * MAX_PER_BYTE + MIN_ITEMS, MAX_ITEMS)


def read_file(data: bytes) -> tuple[dict[int, ByteReader], frozenset[str]]:
    """The sections of a file, each with the checksum that it should have, and its features."""
    reader = ByteReader(data, BYTE_RULES)
    if data[: len(MAGIC)] != MAGIC:
        raise Broken(TCB11, 0, "this is no image of task control blocks")
    reader.at = len(MAGIC)
    version = reader.varint("the version")
    if version != VERSION:
        help_ = "take a newer nacre, or bind the program again"
        message = f"version {version:,}; this reader knows {VERSION}"
        raise Broken(TCB11, len(MAGIC), message, help_)
    features = _read_features(reader)
    rows = _read_table(reader)
    end = reader.at
    if reader.take(_CHECKSUM, "the checksum of the head") != checksum(data[:end]):
        raise Broken(TCB10, end, "the checksum of the head is that of other bytes: it is damaged")
    sections = {tag: _section(reader, data, *row) for tag, row in rows.items()}
    reader.require_end("the last section")
    return sections, features


def _read_features(reader: ByteReader) -> frozenset[str]:
    start = reader.at
    bits = reader.varint("the features")
    known, unknown = [], []
    for bit in range(bits.bit_length()):
        if not bits >> bit & 1:
            continue
        name = reader.text("a feature", _MOST_FEATURE)
        if bit >= len(FEATURES):
            unknown.append(backquote(name))
        elif FEATURES[bit] != name:
            message = f"feature {bit} is called {backquote(name)}, not `{FEATURES[bit]}`"
            raise Broken(TCB12, start, message)
        else:
            known.append(name)
    if unknown:
        help_ = "take a newer nacre, or bind the program without them"
        raise Broken(TCB12, start, f"unknown features: {', '.join(unknown)}", help_)
    return frozenset(known)


def _read_table(reader: ByteReader) -> dict[int, tuple[int, bytes]]:
    start = reader.at
    rows: dict[int, tuple[int, bytes]] = {}
    for _ in range(reader.varint("the number of sections")):
        tag = reader.varint("a section's tag")
        if tag not in SECTIONS or tag <= max(rows, default=0):
            raise Broken(TCB13, start, f"section {tag:,} is unknown or out of order")
        rows[tag] = reader.varint("a section's size"), reader.take(_CHECKSUM, "a checksum")
    if HEADER not in rows:
        raise Broken(TCB13, start, "the file has no header")
    return rows


def _section(reader: ByteReader, data: bytes, size: int, expected: bytes) -> ByteReader:
    if size > reader.left:
        message = f"a section has {size:,} bytes, {reader.left:,} are left"
        raise Broken(TCB10, reader.at, message)
    if checksum(data[reader.at : reader.at + size]) != expected:
        raise Broken(TCB10, reader.at, "the checksum of a section is that of other bytes")
    section = reader.within(size)
    section.most = most_items(size)
    section.most_text = min(section.most * _CHARACTERS, MAX_TEXT_BYTES)
    return section

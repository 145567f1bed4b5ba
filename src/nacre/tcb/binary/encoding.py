"""An image as the bytes of a file, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nacre.base.binary.cursor import Broken, ByteReader
from nacre.base.diagnostics import InputError
from nacre.base.source import whole_file
from nacre.tcb.binary.columns import LEAST_PERIODIC
from nacre.tcb.binary.container import (
    CONSTANTS,
    HEADER,
    ORIGINS,
    SECTIONS,
    STREAMS,
    most_items,
    read_file,
    write_file,
)
from nacre.tcb.binary.pools import refuse
from nacre.tcb.binary.sections import SectionReader, SectionWriter
from nacre.tcb.binary.streams import read_streams, write_streams
from nacre.tcb.block_table import PERIODS, RECORDS
from nacre.tcb.image import (
    Block,
    Constant,
    Image,
    Machine,
    Operand,
    Origin,
    Placement,
    Port,
)
from nacre.tcb.rules.binary import TCB10, TCB14

_DAMAGED = "it was cut or changed on its way: copy it again, or bind the program again"
_HEADER_RECORDS = (Image, Machine, Placement, Port)
_LISTS = ((CONSTANTS, Constant), (ORIGINS, Origin))


def encode(image: Image, features: frozenset[str] | None = None) -> bytes:
    """The only bytes that stand for an image, with the features of its own or with these."""
    if features is None:
        features = features_of(image)
    return write_file(sections_of(image, features), features)


def sections_of(image: Image, features: frozenset[str]) -> dict[int, bytes]:
    """Sections by their tags; none that is empty."""
    header = SectionWriter(_HEADER_RECORDS, features)
    header.counts = [len(image.placements), len(image.ports)]
    header.add_records(Image, [image])
    header.add_records(Machine, [image.machine])
    header.add_records(Placement, image.placements)
    header.add_records(Port, image.ports)
    sections = {HEADER: header.content()}
    for tag, of in _LISTS:
        values: Sequence[Any] = getattr(image, SECTIONS[tag])
        if values:
            writer = SectionWriter((of,), features)
            writer.counts = [len(values)]
            writer.add_records(of, values)
            sections[tag] = writer.content()
    if image.streams:
        sections[STREAMS] = write_streams(image.streams, features)
        _require_readable(image, len(sections[STREAMS]))
    return sections


def _require_readable(image: Image, size_bytes: int) -> None:
    """Refuse few bytes that stand for so much that no reader would take it."""
    items = sum(1 for stream in image.streams for _ in stream.blocks())
    if items > most_items(size_bytes):
        raise refuse(f"{items:,} blocks in {size_bytes:,} bytes; write what repeats as a repeat")


def features_of(image: Image) -> frozenset[str]:
    """What a reader must know to understand an image."""
    of_fields = frozenset(
        field.feature
        for value in _values(image)
        for field in RECORDS[type(value)].fields
        if field.feature and getattr(value, field.name) != field.default
    )
    return of_fields | {PERIODS} if _has_many_counts(image) else of_fields


def _has_many_counts(image: Image) -> bool:
    """Whether columns of counts can be long enough for a period."""
    blocks = [block for stream in image.streams for block, _ in stream.blocks()]
    waits, sets = sum(len(b.waits) for b in blocks), sum(len(b.sets) for b in blocks)
    return max(waits, sets) >= LEAST_PERIODIC


def _values(image: Image) -> Iterator[Block | Operand | Port]:
    yield from image.ports
    for stream in image.streams:
        for block, _ in stream.blocks():
            yield block
            yield from (operand for operand in block.inputs if operand is not None)
            yield from block.outputs


def decode(data: bytes, name: str = "<bytes>") -> Image:
    """The image of a file; InputError where it is none, or is not written as it would be."""
    try:
        sections, features = read_file(data)
        image = _decode(sections, features)
        # Files from before there were periods have none.
        own = features_of(image)
        _require_canonical(data, encode(image, own if PERIODS in features else own - {PERIODS}))
    except Broken as problem:
        message = f"at byte {problem.offset:,}: {problem.message}"
        help_ = problem.help or (_DAMAGED if problem.rule is TCB10 else None)
        finding = problem.rule.at(whole_file(name), message, help=help_)
        raise InputError([finding]) from None
    return image


def _require_canonical(data: bytes, expected: bytes) -> None:
    if data == expected:
        return
    pairs = enumerate(zip(data, expected, strict=False))
    at = next((at for at, (a, b) in pairs if a != b), min(len(data), len(expected)))
    message = "the file says what it says in another way than it would be written"
    raise Broken(TCB14, at, message, "write it anew from its text")


def _decode(sections: Mapping[int, ByteReader], features: frozenset[str]) -> Image:
    fields: dict[str, Any] = {SECTIONS[tag]: () for tag in SECTIONS if tag != HEADER}
    header = SectionReader(sections[HEADER], _HEADER_RECORDS, features, 2)
    (own,) = header.heads(Image, 1)
    (machine,) = header.records(Machine, 1)
    placements, ports = header.counts
    fields["placements"] = tuple(header.records(Placement, placements))
    fields["ports"] = tuple(header.records(Port, ports))
    header.finish()
    for tag, of in _LISTS:
        if tag in sections:
            fields[SECTIONS[tag]] = _read_list(sections[tag], of, features)
    if STREAMS in sections:
        fields[SECTIONS[STREAMS]] = read_streams(sections[STREAMS], features)
    return Image(machine=machine, **own, **fields)


def _read_list(reader: ByteReader, of: type[object], features: frozenset[str]) -> tuple[Any, ...]:
    section = SectionReader(reader, (of,), features, 1)
    values = section.records(of, section.counts[0])
    section.finish()
    return tuple(values)

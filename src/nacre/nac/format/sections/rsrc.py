"""RSRC: embedded files."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.nac.format.cursor import Cursor
from nacre.nac.format.packing import pack, text
from nacre.nac.format.reading import CODECS, ReadContext, SectionCodec
from nacre.nac.format.values import Bytes, Resource


def read(cursor: Cursor, reading: ReadContext) -> tuple[Resource, ...]:
    """The files; their contents stay where they are."""
    offsets: list[int] = []

    def record() -> Resource:
        offsets.append(cursor.at)
        name = cursor.text(cursor.u16("the length of a name"), "the name of a resource")
        return Resource(name, cursor.take(cursor.u32("the length of a resource"), f"`{name}`"))

    resources = cursor.records(6, "resources", record)
    reading.record_offsets["RSRC"] = tuple(offsets)
    reading.report_repeated((r.name for r in resources), tuple(offsets), "RSRC", "resource")
    return resources


def write(resources: tuple[Resource, ...]) -> Iterator[Bytes]:
    """The bytes behind the tag, in parts."""
    yield pack("I", "length", len(resources))
    for resource in resources:
        yield text(resource.name, "H", "the name of a resource")
        yield pack("I", "length", len(resource.data))
        yield resource.data


CODECS.register("RSRC")(SectionCodec(read, write))

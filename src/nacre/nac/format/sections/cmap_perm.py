"""CMAP and PERM: names of operations and signatures by id."""

from __future__ import annotations

from functools import partial

from nacre.nac.format.cursor import Cursor
from nacre.nac.format.packing import pack, text
from nacre.nac.format.reading import CODECS, ReadContext, SectionCodec
from nacre.nac.format.values import NameEntry


def _read(cursor: Cursor, reading: ReadContext, tag: str, what: str) -> tuple[NameEntry, ...]:
    offsets: list[int] = []

    def entry() -> NameEntry:
        offsets.append(cursor.at)
        id_, length = cursor.u16(f"the id of an {what}"), cursor.u8("a length")
        return NameEntry(id_, cursor.text(length, f"the text of {what} {id_}"))

    entries = cursor.records(3, f"{what}s", entry)
    reading.record_offsets[tag] = tuple(offsets)
    reading.report_repeated((named.id for named in entries), tuple(offsets), tag, what)
    return entries


def _write(entries: tuple[NameEntry, ...], what: str) -> bytes:
    parts = [pack("I", "length", len(entries))]
    for named in entries:
        parts.append(pack("H", what, named.id))
        parts.append(text(named.text, "B", f"the text of {what} {named.id}"))
    return b"".join(parts)


for _tag, _what in (("CMAP", "operation"), ("PERM", "signature")):
    _codec = SectionCodec(partial(_read, tag=_tag, what=_what), partial(_write, what=_what))
    CODECS.register(_tag)(_codec)

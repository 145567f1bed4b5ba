"""CMAP and PERM: names of operations and signatures by id."""

from __future__ import annotations

from nacre.nac.format.cursor import Cursor
from nacre.nac.format.packing import packed, text
from nacre.nac.format.reading import Reading
from nacre.nac.format.values import Named

_WHAT = {"CMAP": "operation", "PERM": "signature"}


def read_table(cursor: Cursor, reading: Reading, tag: str) -> tuple[Named, ...]:
    """The entries of one of the two."""
    what = _WHAT[tag]
    offsets: list[int] = []

    def entry() -> Named:
        offsets.append(cursor.at)
        id_, length = cursor.u16(f"the id of an {what}"), cursor.u8("a length")
        return Named(id_, cursor.text(length, f"the text of {what} {id_}"))

    made = cursor.records(3, f"{what}s", entry)
    reading.places[tag] = tuple(offsets)
    reading.once((named.id for named in made), tuple(offsets), tag, what)
    return made


def write_table(entries: tuple[Named, ...], tag: str) -> bytes:
    """The bytes behind the tag."""
    what = _WHAT[tag]
    parts = [packed("I", "length", len(entries))]
    for named in entries:
        parts.append(packed("H", what, named.id))
        parts.append(text(named.text, "B", f"the text of {what} {named.id}"))
    return b"".join(parts)

"""CMAP and PERM: names of operations and signatures by id."""

from __future__ import annotations

from nacre.nac.format.cursor import Cursor
from nacre.nac.format.packing import packed, text
from nacre.nac.format.reading import Reading
from nacre.nac.format.values import Named


def read_operations(cursor: Cursor, reading: Reading) -> tuple[Named, ...]:
    """The names of operations, of CMAP."""
    return _read(cursor, reading, "CMAP", "operation")


def read_signatures(cursor: Cursor, reading: Reading) -> tuple[Named, ...]:
    """The signatures, of PERM."""
    return _read(cursor, reading, "PERM", "signature")


def _read(cursor: Cursor, reading: Reading, tag: str, what: str) -> tuple[Named, ...]:
    offsets: list[int] = []

    def entry() -> Named:
        offsets.append(cursor.at)
        id_, length = cursor.u16(f"the id of an {what}"), cursor.u8("a length")
        return Named(id_, cursor.text(length, f"the text of {what} {id_}"))

    made = cursor.records(3, f"{what}s", entry)
    reading.places[tag] = tuple(offsets)
    reading.once((named.id for named in made), tuple(offsets), tag, what)
    return made


def write_operations(entries: tuple[Named, ...]) -> bytes:
    """The bytes of CMAP behind the tag."""
    return _write(entries, "operation")


def write_signatures(entries: tuple[Named, ...]) -> bytes:
    """The bytes of PERM behind the tag."""
    return _write(entries, "signature")


def _write(entries: tuple[Named, ...], what: str) -> bytes:
    parts = [packed("I", "length", len(entries))]
    for named in entries:
        parts.append(packed("H", what, named.id))
        parts.append(text(named.text, "B", f"the text of {what} {named.id}"))
    return b"".join(parts)

"""PERM: signatures, a character for each argument."""

from __future__ import annotations

from nacre.nac.format.cursor import Cursor
from nacre.nac.format.reading import Reading
from nacre.nac.format.tables import read_table, write_table
from nacre.nac.format.values import Named


def read(cursor: Cursor, reading: Reading) -> tuple[Named, ...]:
    """The signatures by id."""
    return read_table(cursor, reading, "PERM")


def write(entries: tuple[Named, ...]) -> bytes:
    """The bytes behind the tag."""
    return write_table(entries, "PERM")

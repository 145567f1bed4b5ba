"""Constants: their tags, and what stands behind each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

NULL, BOOL, INT, FLOAT, STRING, INTS, FLOATS = range(7)

# What the 16-bit length counts.
Counts = Literal["nothing", "bytes", "elements"]


class Tag(Struct, frozen=True):
    """A kind of constant."""

    code: int
    name: str
    counts: Counts
    width: int  # bytes of one element
    length: int | None = None  # where it is fixed


TAGS: Mapping[int, Tag] = MappingProxyType(
    {
        NULL: Tag(NULL, "null", "nothing", 0),
        # The text calls this length ignored; every file in use has one byte.
        BOOL: Tag(BOOL, "bool", "bytes", 1, 1),
        INT: Tag(INT, "int64", "bytes", 1, 8),
        FLOAT: Tag(FLOAT, "float64", "bytes", 1, 8),
        STRING: Tag(STRING, "string", "bytes", 1),
        INTS: Tag(INTS, "list[int32]", "elements", 4),
        FLOATS: Tag(FLOATS, "list[float32]", "elements", 4),
    }
)
MOST_LENGTH = 65535

# What a constant-coded argument is expected to be; practice mixes 1, 1.0 and True.
_NUMBERS = frozenset({BOOL, INT, FLOAT})
FITS: Mapping[str, frozenset[int]] = MappingProxyType(
    {
        "A": frozenset({NULL, INT, INTS, BOOL, FLOAT}),
        "S": frozenset({NULL, INTS, FLOATS}),
        "i": _NUMBERS,
        "f": _NUMBERS,
        "b": _NUMBERS,
        "s": frozenset({STRING}),
        "c": frozenset(TAGS),
    }
)

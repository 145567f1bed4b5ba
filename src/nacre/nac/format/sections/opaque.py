"""TRNG and ARRS of v1.8: kept as they are, up to where the next section begins.

Both begin with a number of four bytes; what follows is not looked at.
"""

from __future__ import annotations

from nacre.nac.format.cursor import Cursor
from nacre.nac.format.reading import CODECS, ReadContext, SectionCodec
from nacre.nac.format.values import Bytes

_COUNT_BYTES = 4


def read(cursor: Cursor, reading: ReadContext) -> Bytes:
    """All bytes behind the tag."""
    return cursor.take(max(cursor.remaining, _COUNT_BYTES), "the section")


def write(content: Bytes) -> Bytes:
    """The bytes behind the tag."""
    return content


CODECS.register("TRNG", "ARRS")(SectionCodec(read, write))

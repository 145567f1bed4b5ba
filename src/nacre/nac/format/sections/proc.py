"""PROC: the program of a tokenizer, which is bytes here."""

from __future__ import annotations

from nacre.nac.format.cursor import Cursor
from nacre.nac.format.packing import pack
from nacre.nac.format.reading import CODECS, ReadContext, SectionCodec


def read(cursor: Cursor, reading: ReadContext) -> bytes:
    """The manifest."""
    return bytes(cursor.take(cursor.u32("the length of the manifest"), "the manifest"))


def write(manifest: bytes) -> bytes:
    """The bytes behind the tag."""
    return pack("I", "length", len(manifest)) + manifest


CODECS.register("PROC")(SectionCodec(read, write))

"""The header: magic, version, counts, and where the sections lie."""

from __future__ import annotations

from collections.abc import Mapping

from nacre.nac.format.cursor import Broken, Cursor
from nacre.nac.format.packing import pack
from nacre.nac.format.positions import Position
from nacre.nac.format.values import Header
from nacre.nac.rules.container import NAC02, NAC03
from nacre.nac.spec.header import INTERNAL_BIT, MAGIC, VERSIONS


def read(view: memoryview) -> tuple[Header, dict[str, int]]:
    """The header and the offsets of the sections that are there."""
    cursor = Cursor(view)
    if bytes(view[: len(MAGIC)]) != MAGIC[: len(view)] or not len(view):
        begins = f"begins with {bytes(view[:3])!r}" if len(view) else "is empty"
        message = f"{begins}, expected {MAGIC!r}"
        help_ = "of a model of another kind, `nacre nac build MODEL -o FILE.nac` makes a file"
        raise Broken(NAC02, Position(0), message, help_)
    cursor.take(len(MAGIC), "the magic")
    byte = cursor.u8("the version")
    version = VERSIONS.get(byte)
    if version is None:
        known = ", ".join(f"{v.byte} (v{v.name})" for v in VERSIONS.values())
        raise Broken(NAC03, Position(len(MAGIC)), f"version {byte}, expected {known}")
    flags = cursor.u8("the quantisation")
    inputs, outputs = cursor.u16("the number of inputs"), cursor.u16("the number of outputs")
    reserved, d_model = cursor.u8("a reserved byte"), cursor.u16("d_model")
    offsets = {tag: cursor.u64(f"the offset of {tag.strip()}") for tag in version.sections}
    padding = bytes(cursor.take(version.padding, "the padding"))
    header = Header(
        byte,
        bool(flags & INTERNAL_BIT),
        bool(flags & version.training_bit),
        flags & version.quant_mask,
        inputs,
        outputs,
        d_model,
        reserved,
        padding,
    )
    return header, {tag: offset for tag, offset in offsets.items() if offset}


def write(header: Header, offsets: Mapping[str, int]) -> bytes:
    """The bytes of the header."""
    version = header.rules
    flags = (INTERNAL_BIT if header.is_internal else 0) | header.quant
    flags |= version.training_bit if header.has_training else 0
    return b"".join(
        [
            MAGIC,
            pack("BB", "length", header.version, flags),
            pack("HH", "length", header.inputs, header.outputs),
            pack("BH", "length", header.reserved, header.d_model),
            *(pack("Q", "length", offsets.get(tag, 0)) for tag in version.sections),
            header.padding,
        ]
    )

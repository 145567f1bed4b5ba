"""The header: versions, its fields, and the table of sections."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

MAGIC = b"NAC"
RESERVED_AT = 9
D_MODEL_AT = 10
OFFSETS_AT = 12
OFFSET_BYTES = 8
MOST_RECORDS = 65536  # of a table: ids and indices have 16 bits


class Version(Struct, frozen=True):
    """A version of the format: what its byte is, and what follows from it."""

    byte: int
    name: str
    sections: tuple[str, ...]  # in the order of the table of offsets
    padding: int  # bytes behind that table
    training_bit: int  # of byte 4, 0 where there is none
    first_custom_id: int

    @property
    def size(self) -> int:
        """The bytes of the header."""
        return OFFSETS_AT + OFFSET_BYTES * len(self.sections) + self.padding

    @property
    def quant_mask(self) -> int:
        """The bits of byte 4 that say how weights are quantised."""
        return 0x7F & ~self.training_bit


_NINE = ("MMAP", "OPS ", "CMAP", "CNST", "PERM", "DATA", "PROC", "ORCH")

VERSIONS: Mapping[int, Version] = MappingProxyType(
    {
        1: Version(1, "1.6", (*_NINE, "RSRC"), 4, 0, 20),
        2: Version(2, "1.8", (*_NINE, "TRNG", "RSRC", "ARRS"), 0, 0x40, 32),
    }
)
CURRENT = VERSIONS[1]

INTERNAL_BIT = 0x80  # of byte 4: the weights lie in this file


class Section(Struct, frozen=True):
    """A section: what it holds, and how that lies behind the tag."""

    tag: str
    title: str
    layout: str
    is_always_written: bool = False  # even when it holds nothing


_NAMED = "u32 records: u16 id, u8 length,"
_PARAMETERS = "u32 names of parameters (u16 id, u16 length, text)"
_INPUTS = "u32 names of inputs (u16 instruction, u16 length, text)"
_TENSORS = "u32 tensors (u16 id, u32 metadata length, u64 data length, metadata, data)"

# In the order in which they are written.
SECTIONS: Mapping[str, Section] = MappingProxyType({row.tag: row for row in (
    Section("MMAP", "the schedule of the memory coprocessor",
            "u32 records: u16 tick, u8 count, so many (u8 action, u16 target)", True),
    Section("OPS ", "the instructions", "u32 instructions, then these", True),
    Section("CMAP", "names of operations", f"{_NAMED} the name of an operation", True),
    Section("CNST", "constants", "u32 records: u16 id, u8 type, u16 length, the value", True),
    Section("PERM", "signatures", f"{_NAMED} a signature", True),
    Section("DATA", "names and weights",
            f"{_PARAMETERS}; {_INPUTS}; with internal weights {_TENSORS}", True),
    Section("PROC", "the tokenizer", "u32 length, the program of the tokenizer (TISA)"),
    Section("RSRC", "resources", "u32 files: u16 length, name, u32 length, data"),
    Section("ORCH", "the execution plan", "u32 bytecode length, u32 constants, both (MEP)", True),
    Section("TRNG", "training instructions, kept as they are", "kept as bytes"),
    Section("ARRS", "arrays of a plan, kept as they are", "kept as bytes"),
)})  # fmt: skip

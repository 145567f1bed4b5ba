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

# In which order the sections are written, and which are written even when they hold nothing.
WRITE_ORDER = ("MMAP", "OPS ", "CMAP", "CNST", "PERM", "DATA", "PROC", "RSRC", "ORCH")
ALWAYS_WRITTEN = frozenset({"MMAP", "OPS ", "CMAP", "CNST", "PERM", "DATA", "ORCH"})

SECTION_TITLES: Mapping[str, str] = MappingProxyType(
    {
        "MMAP": "the schedule of the memory coprocessor",
        "OPS ": "the instructions",
        "CMAP": "names of operations",
        "CNST": "constants",
        "PERM": "signatures",
        "DATA": "names and weights",
        "PROC": "the tokenizer",
        "ORCH": "the execution plan",
        "TRNG": "training instructions, kept as they are",
        "RSRC": "resources",
        "ARRS": "arrays of a plan, kept as they are",
    }
)

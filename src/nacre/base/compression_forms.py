"""How elements are compressed, and how many bytes they take then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MAX_PALETTE_BITS = 8


@dataclass(frozen=True, slots=True)
class CompressionForm:
    """How elements are compressed.

    `palette`: `tables` tables of `2**bits` elements, then for each element its place in the table
    of its part; the elements are cut into as many parts as there are tables, all of one size.
    `sparse`: a bit for each element, 0 where all of its bits are 0; then the others.
    """

    name: Literal["palette", "sparse"]
    bits: int = 0  # of a palette
    tables: int = 1


def bytes_of_bits(bits: int) -> int:
    """Whole bytes."""
    return (bits + 7) // 8


def table_bytes(form: CompressionForm, element_bits: int) -> int:
    """What the tables of a palette take."""
    return form.tables * bytes_of_bits(element_bits << form.bits)


def size_bounds(form: CompressionForm, count: int, element_bits: int) -> tuple[int, int]:
    """The fewest and the most bytes that so many elements take."""
    if form.name == "palette":
        size = table_bytes(form, element_bits) + bytes_of_bits(count * form.bits)
        return size, size
    mask = bytes_of_bits(count)
    return mask, mask + bytes_of_bits(count * element_bits)

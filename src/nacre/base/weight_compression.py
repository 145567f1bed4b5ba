"""Elements in fewer bytes, as a device decompresses them on their way in: palettes and zero masks.

Elements are taken in order, the last axis fastest. Bits count from the lowest of the first byte;
each part is padded with zero bits to whole bytes, and elements of 4 bits lie two to a byte, the low
half first. What is compressed comes back bit for bit.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nacre.base.compression_forms import (
    MAX_PALETTE_BITS,
    CompressionForm,
    bytes_of_bits,
    size_bounds,
)

Bytes = npt.NDArray[np.uint8]
Codes = npt.NDArray[np.uint32]  # the bits of an element, whatever they mean


class BrokenCompressionError(ValueError):
    """Bytes that are no compressed elements; the message says why."""


def compress(plain: Bytes, count: int, element_bits: int, form: CompressionForm) -> Bytes | None:
    """Dense elements in fewer bytes, or more; None where a table cannot hold all that differ."""
    codes = _codes_of(plain, count, element_bits)
    if form.name == "palette":
        return _compress_palette(codes, element_bits, form)
    is_there = codes != 0
    return np.concatenate(
        [_pack(is_there.astype(np.uint32), 1), _pack(codes[is_there], element_bits)]
    )


def best_form(
    plain: Bytes, count: int, element_bits: int, entries: int, tables: int, has_sparse: bool
) -> CompressionForm | None:
    """The form in which elements take the fewest bytes, if those are fewer than they are.

    `entries` is the most that a table holds, `tables` the most tables.
    """
    parts = plain.reshape(1, -1)
    best = best_common_form(parts, count, element_bits, entries, tables, has_sparse)
    return None if best is None else best[0]


def best_common_form(
    parts: Bytes, count: int, element_bits: int, entries: int, tables: int, has_sparse: bool
) -> tuple[CompressionForm, int] | None:
    """The form in which the longest of several parts takes the fewest bytes, and how many.

    Parts have one size, a row each; None where no form takes fewer bytes than they are.
    """
    codes = np.stack([_codes_of(part, count, element_bits) for part in parts])
    sizes: list[tuple[int, int, CompressionForm]] = []
    if has_sparse:
        kept = int(np.count_nonzero(codes, axis=1).max())
        size = bytes_of_bits(count) + bytes_of_bits(kept * element_bits)
        sizes.append((size, 0, CompressionForm("sparse")))
    most = min(entries, 1 << MAX_PALETTE_BITS)
    for number in range(1, tables + 1):
        known = None if count % number else _most_distinct(codes.reshape(-1, count // number), most)
        bits = max(1, (known - 1).bit_length()) if known is not None else 0
        if known is not None and 1 << bits <= most:
            form = CompressionForm("palette", bits, number)
            sizes.append((size_bounds(form, count, element_bits)[0], number, form))
    if not sizes:
        return None
    size, _, found = min(sizes, key=lambda one: one[:2])
    return (found, size) if size < parts.shape[1] else None


_LOOKED_AT = 1024  # elements that mostly show that there are too many different ones


def _most_distinct(tables: Codes, most: int) -> int | None:
    """How many different elements a row has at most; None: more than a table holds."""
    counts = []
    for row in tables:
        if np.unique(row[:_LOOKED_AT]).size > most or (count := np.unique(row).size) > most:
            return None
        counts.append(int(count))
    return max(counts)


def _compress_palette(codes: Codes, element_bits: int, form: CompressionForm) -> Bytes | None:
    if not 1 <= form.bits <= MAX_PALETTE_BITS or form.tables < 1 or codes.size % form.tables:
        return None
    tables, places = [], []
    for part in codes.reshape(form.tables, -1):
        known, place = np.unique(part, return_inverse=True)
        if known.size > 1 << form.bits:
            return None
        table = np.zeros(1 << form.bits, np.uint32)
        table[: known.size] = known
        tables.append(_pack(table, element_bits))
        places.append(place.reshape(-1).astype(np.uint32))
    return np.concatenate([*tables, _pack(np.concatenate(places), form.bits)])


def decompress(
    compressed: Bytes, count: int, element_bits: int, form: CompressionForm
) -> tuple[Bytes, int]:
    """The dense elements, and how many bytes they were; BrokenCompressionError for others.

    Bytes that follow are left alone.
    """
    if form.name == "palette":
        codes, used = _read_palette(compressed, count, element_bits, form)
    else:
        codes, used = _read_sparse(compressed, count, element_bits)
    return _pack(codes, element_bits), used


def _read_palette(
    compressed: Bytes, count: int, element_bits: int, form: CompressionForm
) -> tuple[Codes, int]:
    used, _ = size_bounds(form, count, element_bits)
    if compressed.size < used:
        raise BrokenCompressionError(f"{used} bytes are needed, found {compressed.size}")
    one = bytes_of_bits(element_bits << form.bits)
    tables = np.stack(
        [
            _codes_of(compressed[i * one : (i + 1) * one], 1 << form.bits, element_bits)
            for i in range(form.tables)
        ]
    )
    places = _codes_of(compressed[form.tables * one : used], count, form.bits)
    table_of_place = np.repeat(np.arange(form.tables), count // form.tables)
    return tables[table_of_place, places], used


def _read_sparse(compressed: Bytes, count: int, element_bits: int) -> tuple[Codes, int]:
    mask_bytes = bytes_of_bits(count)
    if compressed.size < mask_bytes:
        raise BrokenCompressionError(f"the mask takes {mask_bytes} bytes, found {compressed.size}")
    mask = np.unpackbits(compressed[:mask_bytes], bitorder="little").astype(bool)
    if mask[count:].any():
        raise BrokenCompressionError(f"the mask has elements beyond the {count} that there are")
    kept = int(np.count_nonzero(mask))
    used = mask_bytes + bytes_of_bits(kept * element_bits)
    if compressed.size < used:
        raise BrokenCompressionError(
            f"the mask keeps {kept} of {count} elements, which end at byte {used}"
            f", found {compressed.size}"
        )
    codes = np.zeros(count, np.uint32)
    codes[mask[:count]] = _codes_of(compressed[mask_bytes:used], kept, element_bits)
    return codes, used


def _codes_of(packed: Bytes, count: int, bits: int) -> Codes:
    """So many numbers of so many bits each, from the front of some bytes."""
    if bits in (8, 16, 32):
        size = count * bits // 8
        return packed[:size].copy().view(f"<u{bits // 8}").astype(np.uint32)
    flat = np.unpackbits(
        packed[: bytes_of_bits(count * bits)], count=count * bits, bitorder="little"
    )
    weights = (1 << np.arange(bits)).astype(np.uint32)
    codes: Codes = (flat.reshape(count, bits) * weights).sum(axis=1, dtype=np.uint32)
    return codes


def _pack(codes: Codes, bits: int) -> Bytes:
    if bits in (8, 16, 32):
        return codes.astype(f"<u{bits // 8}").view(np.uint8)
    places = np.arange(bits, dtype=np.uint32)
    flat = ((codes[:, None] >> places) & 1).astype(np.uint8)
    return np.packbits(flat.reshape(-1), bitorder="little")

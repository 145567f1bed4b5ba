"""Compressed elements read bit by bit, after the page alone and with no code of ours."""

from __future__ import annotations

from nacre.base.compression_forms import CompressionForm


def naive_decompress(data: bytes, count: int, bits: int, form: CompressionForm) -> list[int] | None:
    """The bits of each element as a number; None where the bytes are no compressed elements."""

    def field(byte: int, index: int, width: int) -> int:
        value = 0
        for bit in range(width):
            place = byte * 8 + index * width + bit
            value += (data[place // 8] >> (place % 8) & 1) << bit
        return value

    def whole(count_of_bits: int) -> int:
        return -(-count_of_bits // 8)

    if form.name == "sparse":
        mask = whole(count)
        if len(data) < mask:
            return None
        flags = [field(0, i, 1) for i in range(mask * 8)]
        if any(flags[count:]) or len(data) < mask + whole(sum(flags) * bits):
            return None
        return [field(mask, sum(flags[:i]), bits) if flags[i] else 0 for i in range(count)]
    entries = 2**form.bits
    table = whole(entries * bits)
    if len(data) < form.tables * table + whole(count * form.bits):
        return None
    made = []
    for i in range(count):
        place = field(form.tables * table, i, form.bits)
        made.append(field(table * (i // (count // form.tables)), place, bits))
    return made

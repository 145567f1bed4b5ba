"""Messages of Protocol Buffers on the wire: fields one after another, bounded by their message."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.nac.tisa.files.problems import FileProblem

_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5
_LONGEST_VARINT = 10
_SIZES = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}
Value = int | memoryview  # a number, or the bytes of a text, a message or a number with a point


def read_fields(message: memoryview) -> Iterator[tuple[int, Value]]:
    """Numbers and values of the fields of a message; FileProblem where they do not fit in it."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if number == 0:
            raise FileProblem(f"a field has the number 0 (byte {at:,})")
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield number, value
            continue
        if kind == _LENGTH:
            size, at = _varint(message, at)
        elif kind in _SIZES:
            size = _SIZES[kind]
        else:
            raise FileProblem(f"field {number} is of kind {kind}, which there is not")
        if size > len(message) - at:
            raise FileProblem(f"field {number} has {size:,} bytes, {len(message) - at:,} are left")
        yield number, message[at : at + size]
        at += size


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """A number in groups of seven bits, and the place behind it."""
    value = 0
    for index, byte in enumerate(message[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, at + index + 1
    raise FileProblem(f"a number has no end (byte {at:,})")

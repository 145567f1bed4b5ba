"""The table of tensors: names, shapes, types and places, judged before any of their bytes is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from nacre.base.binary.cursor import Broken
from nacre.base.excerpt import backquote
from nacre.llm.gguf.cursor import Cursor
from nacre.llm.gguf.formats import FORMATS, Format, unknown_format
from nacre.llm.gguf.limits import MAX_DIMENSIONS, MAX_NAME_BYTES, MAX_TENSORS
from nacre.llm.rules.gguf import GGF09, GGF10, GGF11, GGF12

_SMALLEST_ROW = 8 + 1 + 4 + 8 + 4 + 8
_MAX_ELEMENTS = 1 << 63


@dataclass(frozen=True, slots=True)
class TensorRow:
    """A tensor as the file's table has it."""

    name: str
    shape: tuple[int, ...]  # as NumPy counts: rows first
    format: Format
    offset: int  # from the start of the file
    size_bytes: int

    @property
    def elements(self) -> int:
        """How many elements there are."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class _Entry:
    row: TensorRow  # with an offset from the start of the data
    at: int  # where the entry stands
    offset_at: int


def read_tensor_count(cursor: Cursor) -> int:
    """How many tensors there are, which must have their place in the bytes that are left."""
    return cursor.count(MAX_TENSORS, _SMALLEST_ROW, "tensors")


def read_tensors(cursor: Cursor, count: int, alignment: int, size: int) -> dict[str, TensorRow]:
    """The table of so many tensors of a file of a size; Broken where one cannot be."""
    entries: dict[str, _Entry] = {}
    for _ in range(count):
        entry = _entry(cursor)
        if entry.row.name in entries:
            message = f"two tensors are called {backquote(entry.row.name)}"
            raise Broken(GGF09, entry.at, message)
        entries[entry.row.name] = entry
    start = -(-cursor.at // alignment) * alignment
    for entry in entries.values():
        _require_place(entry, start, alignment, size)
    _require_apart(entries.values())
    return {name: _with_offset(entry.row, start) for name, entry in entries.items()}


def _with_offset(row: TensorRow, start: int) -> TensorRow:
    return TensorRow(row.name, row.shape, row.format, start + row.offset, row.size_bytes)


def _entry(cursor: Cursor) -> _Entry:
    at = cursor.at
    name = cursor.text("the name of a tensor", MAX_NAME_BYTES)
    if not name:
        raise Broken(GGF09, at, "the name of a tensor is empty")
    what = backquote(name)
    shape_at = cursor.at
    count = cursor.u32(f"the number of dimensions of {what}")
    if not 1 <= count <= MAX_DIMENSIONS:
        message = f"{what} has {count:,} dimensions, expected 1 to {MAX_DIMENSIONS}"
        raise Broken(GGF10, shape_at, message)
    shape: tuple[int, ...] = cursor.numbers("Q", count, f"the shape of {what}")[::-1]
    type_at = cursor.at
    format_ = _format(cursor.u32(f"the type of {what}"), type_at, what)
    _require_shape(shape, format_, shape_at, what)
    offset_at = cursor.at
    offset = cursor.u64(f"the offset of {what}")
    size = prod(shape) // format_.elements * format_.size_bytes
    return _Entry(TensorRow(name, shape, format_, offset, size), at, offset_at)


def _format(number: int, at: int, what: str) -> Format:
    found = FORMATS.get(number)
    if found is None:
        reason, help_text = unknown_format(number)
        raise Broken(GGF11, at, f"{what} is of {reason}", help_text)
    return found


def _require_shape(shape: tuple[int, ...], format_: Format, at: int, what: str) -> None:
    dims = " x ".join(f"{dim:,}" for dim in shape)
    if not all(shape):
        raise Broken(GGF10, at, f"{what} has shape {dims}, expected dimensions of 1 or more")
    if prod(shape) >= _MAX_ELEMENTS:
        raise Broken(GGF10, at, f"{what} has shape {dims}: more elements than 64 bits count")
    if shape[-1] % format_.elements:
        message = (
            f"{what} has rows of {shape[-1]:,}, expected a multiple of {format_.elements}, the "
            f"block of {format_.name}"
        )
        raise Broken(GGF10, at, message)


def _require_place(entry: _Entry, start: int, alignment: int, size: int) -> None:
    row, what = entry.row, backquote(entry.row.name)
    if row.offset % alignment:
        message = f"{what} begins at {row.offset:,} of the data, expected a multiple of {alignment}"
        raise Broken(GGF12, entry.offset_at, message)
    if start + row.offset + row.size_bytes > size:
        message = (
            f"{what} needs {row.size_bytes:,} bytes from byte {start + row.offset:,}, the file has "
            f"{size:,}"
        )
        raise Broken(GGF12, entry.offset_at, message)


def _require_apart(entries: Iterable[_Entry]) -> None:
    ordered = sorted(entries, key=lambda entry: entry.row.offset)
    for first, second in pairwise(ordered):
        if first.row.offset + first.row.size_bytes > second.row.offset:
            one, other = backquote(first.row.name), backquote(second.row.name)
            message = f"{one} and {other} share bytes from {second.row.offset:,} of the data"
            raise Broken(GGF12, second.offset_at, message)

"""Columns of integers in one stream of bits: how few each takes is chosen for all of them at once.

A column is stored as it is, unsigned, or as differences in zigzag, each number in `width` bits;
what does not fit there has its upper bits in a list. The choice follows from the numbers alone, so
that columns have one encoding: a reader chooses again and compares.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nacre.base.binary.column_forms import (
    DIFFERENCES,
    MOST_BITS,
    Integers,
    Unsigned,
    choose,
    choose_constant,
    differences,
    unzigzag,
    zigzag,
)
from nacre.base.binary.cursor import Broken, ByteReader, ByteWriter

_SMALL = 1 << 20
_ONE = np.uint64(1)
_NONE = np.zeros(0, np.int64)
_MASKS = np.array([(1 << width) - 1 for width in range(MOST_BITS + 1)], np.uint64)


def write_columns(out: ByteWriter, columns: Sequence[Integers]) -> None:
    """Write columns, none of which is empty: heads, the list of long numbers, and the bits."""
    out.varint(len(columns))
    if not columns:
        return
    values = np.concatenate(columns)
    lengths = np.array([len(column) for column in columns], np.int64)
    heads = choose(values, lengths)
    firsts = np.cumsum(lengths) - lengths
    is_difference = np.repeat(heads >= DIFFERENCES, lengths)
    between = zigzag(differences(values, firsts, np.empty_like(values)))
    stored = np.where(is_difference, between, values.view(np.uint64))
    widths = np.repeat(heads & 0x7F, lengths).astype(np.uint64)
    upper = stored >> widths
    indices = np.flatnonzero(upper)
    out.raw(heads.tobytes())
    out.varint(len(indices))
    out.varints((np.diff(indices, prepend=-1) - 1).tolist())
    out.varints(upper[indices].tolist())
    out.raw(_pack(stored, widths))


def _pack(values: Unsigned, widths: Unsigned) -> bytes:
    """The lowest bits of numbers, as many as each has, one after the other."""
    raw = values.astype("<u8").view(np.uint8).reshape(len(values), 8)
    bits = np.unpackbits(raw, axis=1, bitorder="little")
    used = np.arange(64, dtype=np.uint64)[None, :] < widths[:, None]
    return np.packbits(bits[used], bitorder="little").tobytes()


class ColumnReader:
    """Columns one after the other, each of as many numbers as those before it say.

    `take` gives the numbers at once; `skip` leaves them for `finish`, which has all and judges.
    """

    def __init__(self, reader: ByteReader, what: str) -> None:
        self._what = what
        self._rules = reader.rules
        self._start = reader.at
        count = reader.varint(what)
        self._heads = np.frombuffer(reader.take(count, what), np.uint8)
        self._each = (self._heads & 0x7F).astype(np.int64)  # bits of a number
        if count and int(self._each.max()) > MOST_BITS:
            raise Broken(
                self._rules.not_canonical, self._start, f"{what} has a column of too many bits"
            )
        listed = reader.varint(what) if count else 0
        self._places, self._upper = _read_list(reader, listed, what)
        self._sorted = self._places.tolist()
        self._bits_start = reader.at
        rest = reader.take(reader.left, what)
        self._size = len(rest)
        self._words = np.ndarray((len(rest) + 1,), "<u8", rest + bytes(8), strides=(1,))
        if self._size < _SMALL:  # numbers that overlap are looked up slowly
            self._words = np.ascontiguousarray(self._words)
        self._widths: list[int] = self._each.tolist()
        self._lengths: list[int] = []
        self._known: dict[int, Integers] = {}  # columns that were taken
        self._constants: dict[int, int] = {}  # those with one number everywhere
        self._values = 0  # that were read or skipped
        self._bits = 0

    def skip(self, count: int) -> int:
        """Go over a column; its number."""
        number = len(self._lengths)
        if number == len(self._widths):
            raise Broken(
                self._rules.not_canonical,
                self._start,
                f"{self._what} has fewer columns than it needs",
            )
        width = self._widths[number]
        if not width:
            self._find_constant(number, count)
        self._lengths.append(count)
        self._values += count
        self._bits += count * width
        if self._bits > 8 * self._size:
            message = f"{self._what} needs {self._bits:,} bits, {8 * self._size:,} are there"
            raise Broken(self._rules.not_canonical, self._bits_start, message)
        return number

    def _find_constant(self, number: int, count: int) -> None:
        """Know a column that has no bits, unless more than its first number is listed."""
        first, last = self._listed(count)
        if first == last:
            self._constants[number] = 0
            return
        is_alone = last == first + 1 and self._sorted[first] == self._values
        if is_alone and self._heads[number] >= DIFFERENCES:
            stored = int(self._upper[first])
            self._constants[number] = (stored >> 1) ^ -(stored & 1)

    def _listed(self, count: int) -> tuple[int, int]:
        """Where the list has the next column's numbers."""
        first = bisect_left(self._sorted, self._values)
        return first, bisect_left(self._sorted, self._values + count, first)

    def take(self, count: int) -> tuple[Integers, int | None]:
        """The numbers of a column; and the only one, where it is surely the same everywhere."""
        value, bit = self._values, self._bits
        first, last = self._listed(count)
        number = self.skip(count)
        only = self._constants.get(number)
        if only is not None:
            self._known[number] = column = np.full(count, only, np.int64)
            return column, only
        width = self._widths[number]
        stored = self._gather(bit + width * np.arange(count), _MASKS[width])
        if first < last:
            stored[self._places[first:last] - value] |= self._upper[first:last] << np.uint64(width)
        self._known[number] = column = self._undo_differences(number, stored)
        return column, None

    def _gather(self, bits: Integers, masks: Unsigned | np.uint64) -> Unsigned:
        values: Unsigned = self._words[bits >> 3]
        bits &= 7
        values >>= bits.view(np.uint64)
        values &= masks
        return values

    def finish(self) -> list[Integers]:
        """The numbers of all columns; Broken where they are not written as they would be."""
        if len(self._lengths) != len(self._heads):
            raise Broken(
                self._rules.not_canonical,
                self._start,
                f"{self._what} has columns that nothing needs",
            )
        if not self._lengths:
            if self._size:
                raise Broken(
                    self._rules.not_canonical,
                    self._bits_start,
                    f"bytes are left behind {self._what}",
                )
            return []
        self._judge_end()
        lengths = np.array(self._lengths, np.int64)
        columns = self._read_skipped(lengths)
        if (self._choose(columns, lengths) != self._heads).any():
            raise Broken(
                self._rules.not_canonical, self._start, f"{self._what} is not in its shortest form"
            )
        self._judge_list(lengths)
        return columns

    def _choose(self, columns: list[Integers], lengths: Integers) -> npt.NDArray[np.uint8]:
        """The heads as they would be written."""
        heads = np.zeros(len(columns), np.uint8)
        others = [number for number in range(len(columns)) if number not in self._constants]
        if others:
            values = np.concatenate([columns[number] for number in others])
            heads[others] = choose(values, lengths[others])
        if self._constants:
            same = list(self._constants)
            numbers = np.array(list(self._constants.values()), np.int64)
            heads[same] = choose_constant(numbers, lengths[same])
        return heads

    def _read_skipped(self, lengths: Integers) -> list[Integers]:
        """All columns: those that were taken, and the others in one go."""
        for number in self._constants.keys() - self._known:
            self._known[number] = np.full(lengths[number], self._constants[number], np.int64)
        columns = [self._known.get(number, _NONE) for number in range(len(lengths))]
        numbers = [number for number in range(len(lengths)) if number not in self._known]
        if not numbers:
            return columns
        each = self._each[numbers]
        sizes, before = lengths * self._each, np.cumsum(lengths) - lengths
        column_sizes = lengths[numbers]
        ends = np.cumsum(column_sizes)
        origins = (np.cumsum(sizes) - sizes)[numbers] - each * (ends - column_sizes)
        bits = np.repeat(each, column_sizes)
        bits *= np.arange(len(bits))
        bits += np.repeat(origins, column_sizes)
        stored = self._gather(bits, np.repeat(_MASKS[each], column_sizes))
        self._patch(stored, before[numbers], column_sizes, each)
        stops = ends.tolist()
        for number, start, stop in zip(numbers, [0, *stops], stops, strict=False):
            columns[number] = self._undo_differences(number, stored[start:stop])
        return columns

    def _undo_differences(self, number: int, stored: Unsigned) -> Integers:
        """The numbers of a column, given those that are stored."""
        if self._heads[number] < DIFFERENCES:
            return stored.view(np.int64)
        return unzigzag(stored).cumsum()

    def _patch(
        self, stored: Unsigned, before: Integers, column_sizes: Integers, each: Integers
    ) -> None:
        """Put the upper bits of long numbers in place, of columns that begin at these numbers."""
        if not self._sorted:
            return
        column = np.searchsorted(before, self._places, side="right") - 1
        inside = self._places - before[column]
        is_own = (column >= 0) & (inside < column_sizes[column])
        column, inside = column[is_own], inside[is_own]
        at = (np.cumsum(column_sizes) - column_sizes)[column] + inside
        stored[at] |= self._upper[is_own] << each[column].astype(np.uint64)

    def _judge_end(self) -> None:
        """Every bit is used, but for those that fill the last byte, and these are 0."""
        spare = 8 * self._size - self._bits
        last = int(self._words[self._size - 1]) & 0xFF if spare else 0
        if spare >= 8 or last >> (8 - spare):
            raise Broken(
                self._rules.not_canonical, self._bits_start, f"bits are left behind {self._what}"
            )
        if self._sorted and self._sorted[-1] >= self._values:
            raise Broken(
                self._rules.not_canonical,
                self._start,
                f"{self._what} lists a number that it does not have",
            )

    def _judge_list(self, lengths: Integers) -> None:
        """What is in the list does not fit in place, and its numbers have 64 bits at most."""
        if not len(self._places):
            return
        column = np.searchsorted(np.cumsum(lengths), self._places, side="right")
        widths = self._each[column].view(np.uint64)
        is_long = (self._upper >> (np.uint64(63) - widths)) >> _ONE
        if is_long.any() or not self._upper.all():
            raise Broken(
                self._rules.not_canonical,
                self._start,
                f"{self._what} lists numbers that are not long",
            )


def _read_list(reader: ByteReader, count: int, what: str) -> tuple[Integers, Unsigned]:
    """The numbers that do not fit in place: which they are, and their upper bits."""
    start = reader.at
    gaps = reader.varints(count, what)
    upper = reader.varints(count, what)
    if count and int(gaps.max()) >> 40:
        raise Broken(
            reader.rules.not_canonical, start, f"{what} lists a number that it does not have"
        )
    return np.cumsum(gaps.astype(np.int64) + 1) - 1, upper

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

from nacre.nem.bytecode.cursor import Broken, ByteReader, ByteWriter
from nacre.nem.spec.rules.bytecode import BYT06

Integers = npt.NDArray[np.int64]
Unsigned = npt.NDArray[np.uint64]

MOST_BITS = 56  # of a number in place: it spans at most eight bytes
_DIFFERENCES = 0x80
_ONE = np.uint64(1)
_NONE = np.zeros(0, np.int64)
_MASKS = np.array([(1 << width) - 1 for width in range(MOST_BITS + 1)], np.uint64)


def zigzag(values: Integers) -> Unsigned:
    """Signed numbers as unsigned ones, small for small: 0, -1, 1, -2 become 0, 1, 2, 3."""
    # Sums and comparisons are what NumPy does fastest.
    return ((values + values) ^ -(values < 0).astype(np.int64)).view(np.uint64)


def unzigzag(values: Unsigned) -> Integers:
    """The inverse of `zigzag`."""
    halves: Integers = (values >> _ONE).view(np.int64)
    signs: Integers = (values & _ONE).view(np.int64)
    return np.bitwise_xor(halves, -signs)


_FEW = 1 << 16
_SHORT = np.array([number.bit_length() for number in range(_FEW)], np.uint8)


def _bit_lengths(values: Integers) -> npt.NDArray[np.uint8]:
    """How many bits each number has, unsigned: of most by a table."""
    lengths: npt.NDArray[np.uint8] = _SHORT[values & (_FEW - 1)]
    longer = np.flatnonzero(values.view(np.uint64) >= _FEW)
    if len(longer):
        those: Unsigned = values.view(np.uint64)[longer]
        upper = (those >> np.uint64(32)).astype(np.float64)
        lower = (those & np.uint64(0xFFFFFFFF)).astype(np.float64)
        lengths[longer] = np.where(upper > 0, np.frexp(upper)[1] + 32, np.frexp(lower)[1])
    return lengths


def _list_costs() -> npt.NDArray[np.float64]:
    """Bytes that a number of so many bits costs in the list, by the width of those in place."""
    bits, widths = np.arange(65)[:, None], np.arange(MOST_BITS + 1)[None, :]
    return np.where(bits > widths, 1.0 + (bits - widths + 6) // 7, 0.0)


_LIST_COSTS = _list_costs()


def _costs(values: Integers, owners: Integers, lengths: Integers) -> npt.NDArray[np.float64]:
    """The bits that each column takes, by width: exact as floats, which multiply faster."""
    count = len(lengths)
    counts = np.bincount(owners + _bit_lengths(values), minlength=count * 65)
    in_place = lengths[:, None] * np.arange(MOST_BITS + 1.0)[None, :]
    listed = counts.reshape(count, 65).astype(np.float64) @ _LIST_COSTS
    return in_place + 8 * listed


def _differences(values: Integers, firsts: Integers) -> Integers:
    """Each number less the one before it in its column."""
    differences = values.copy()
    differences[1:] -= values[:-1]
    differences[firsts] = values[firsts]
    return differences


def choose(values: Integers, lengths: Integers) -> npt.NDArray[np.uint8]:
    """The head of each column: its width, and a bit for differences.

    The smallest wins, numbers before differences, narrow before wide. A number in the list counts
    a byte for its place and those of its upper bits.
    """
    owners = np.repeat(np.arange(len(lengths)) * 65, lengths)
    firsts = np.cumsum(lengths) - lengths
    plain = _costs(values, owners, lengths)
    deltas = _costs(zigzag(_differences(values, firsts)).view(np.int64), owners, lengths)
    best = np.concatenate([plain, deltas], axis=1).argmin(axis=1)
    widths, is_difference = best % (MOST_BITS + 1), best > MOST_BITS
    heads: npt.NDArray[np.uint8] = (widths + _DIFFERENCES * is_difference).astype(np.uint8)
    return heads


def write_columns(out: ByteWriter, columns: Sequence[Integers]) -> None:
    """Write columns, none of which is empty: heads, the list of long numbers, and the bits."""
    out.varint(len(columns))
    if not columns:
        return
    values = np.concatenate(columns)
    lengths = np.array([len(column) for column in columns], np.int64)
    heads = choose(values, lengths)
    firsts = np.cumsum(lengths) - lengths
    is_difference = np.repeat(heads >= _DIFFERENCES, lengths)
    stored = np.where(is_difference, zigzag(_differences(values, firsts)), values.view(np.uint64))
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
        self._start = reader.at
        count = reader.varint(what)
        heads = np.frombuffer(reader.take(count, what), np.uint8)
        self._heads = heads
        if count and int((heads & 0x7F).max()) > MOST_BITS:
            raise Broken(BYT06, self._start, f"{what} has a column of too many bits")
        listed = reader.varint(what) if count else 0
        self._places, self._upper = _read_list(reader, listed, what)
        self._sorted = self._places.tolist()
        self._bits_start = reader.at
        rest = reader.take(reader.left, what)
        self._size = len(rest)
        self._words = np.ndarray((len(rest) + 1,), "<u8", rest + bytes(8), strides=(1,))
        self._lengths: list[int] = []
        self._known: dict[int, Integers] = {}  # columns that were taken
        self._values = 0  # that were read or skipped
        self._bits = 0

    def skip(self, count: int) -> int:
        """Go over a column; its number."""
        if len(self._lengths) == len(self._heads):
            raise Broken(BYT06, self._start, f"{self._what} has fewer columns than it needs")
        number = len(self._lengths)
        self._lengths.append(count)
        self._values += count
        self._bits += count * (int(self._heads[number]) & 0x7F)
        if self._bits > 8 * self._size:
            message = f"{self._what} needs {self._bits:,} bits, {8 * self._size:,} are there"
            raise Broken(BYT06, self._bits_start, message)
        return number

    def take(self, count: int) -> Integers:
        """The numbers of a column."""
        value, bit = self._values, self._bits
        number = self.skip(count)
        head = int(self._heads[number])
        width = head & 0x7F
        if width:
            stored = self._gather(bit + width * np.arange(count), _MASKS[width])
        else:
            stored = np.zeros(count, np.uint64)
        first = bisect_left(self._sorted, value)
        last = bisect_left(self._sorted, value + count, first)
        if first < last:
            stored[self._places[first:last] - value] |= self._upper[first:last] << np.uint64(width)
        column = np.cumsum(unzigzag(stored)) if head >= _DIFFERENCES else stored.view(np.int64)
        self._known[number] = column
        return column

    def _gather(self, bits: Integers, masks: Unsigned | np.uint64) -> Unsigned:
        values: Unsigned = (self._words[bits >> 3] >> (bits & 7).astype(np.uint64)) & masks
        return values

    def finish(self) -> list[Integers]:
        """The numbers of all columns; Broken where they are not written as they would be."""
        if len(self._lengths) != len(self._heads):
            raise Broken(BYT06, self._start, f"{self._what} has columns that nothing needs")
        if not self._lengths:
            if self._size:
                raise Broken(BYT06, self._bits_start, f"bytes are left behind {self._what}")
            return []
        self._judge_end()
        lengths = np.array(self._lengths, np.int64)
        columns = self._read_skipped(lengths)
        values = np.concatenate(columns)
        if (choose(values, lengths) != self._heads).any():
            raise Broken(BYT06, self._start, f"{self._what} is not in its shortest form")
        self._judge_list(lengths)
        return columns

    def _read_skipped(self, lengths: Integers) -> list[Integers]:
        """All columns: those that were taken, and the others in one go."""
        is_left = np.ones(len(lengths), bool)
        is_left[list(self._known)] = False
        columns = [self._known.get(number, _NONE) for number in range(len(lengths))]
        numbers = np.flatnonzero(is_left)
        if not len(numbers):
            return columns
        each = (self._heads & 0x7F).astype(np.int64)
        sizes, before = lengths * each, np.cumsum(lengths) - lengths
        column_sizes = lengths[numbers]
        ends = np.cumsum(column_sizes)
        inside = np.arange(int(ends[-1])) - np.repeat(ends - column_sizes, column_sizes)
        widths = np.repeat(each[numbers], column_sizes)
        starts = np.repeat((np.cumsum(sizes) - sizes)[numbers], column_sizes)
        stored = self._gather(starts + widths * inside, _MASKS[widths])
        self._patch(stored, before[numbers], column_sizes, each[numbers])
        values = _undo_differences(stored, self._heads[numbers] >= _DIFFERENCES, column_sizes)
        for number, column in zip(numbers.tolist(), np.split(values, ends[:-1]), strict=True):
            columns[number] = column
        return columns

    def _patch(
        self, stored: Unsigned, before: Integers, column_sizes: Integers, each: Integers
    ) -> None:
        """Put the upper bits of long numbers in place, of columns that begin at these numbers."""
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
            raise Broken(BYT06, self._bits_start, f"bits are left behind {self._what}")
        if self._sorted and self._sorted[-1] >= self._values:
            raise Broken(BYT06, self._start, f"{self._what} lists a number that it does not have")

    def _judge_list(self, lengths: Integers) -> None:
        """What is in the list does not fit in place, and its numbers have 64 bits at most."""
        if not len(self._places):
            return
        column = np.searchsorted(np.cumsum(lengths), self._places, side="right")
        widths = (self._heads & 0x7F)[column].astype(np.uint64)
        is_long = (self._upper >> (np.uint64(63) - widths)) >> _ONE
        if is_long.any() or not self._upper.all():
            raise Broken(BYT06, self._start, f"{self._what} lists numbers that are not long")


def _undo_differences(
    stored: Unsigned, is_difference: npt.NDArray[np.bool_], lengths: Integers
) -> Integers:
    values = stored.view(np.int64)
    if not is_difference.any():
        return values
    each = np.repeat(is_difference, lengths)
    steps = np.where(each, unzigzag(stored), 0)
    sums = np.cumsum(steps)
    firsts = np.cumsum(lengths) - lengths
    before = np.repeat(sums[firsts] - steps[firsts], lengths)
    return np.where(each, sums - before, values)


def _read_list(reader: ByteReader, count: int, what: str) -> tuple[Integers, Unsigned]:
    """The numbers that do not fit in place: which they are, and their upper bits."""
    start = reader.at
    gaps = reader.varints(count, what)
    upper = reader.varints(count, what)
    if count and int(gaps.max()) >> 40:
        raise Broken(BYT06, start, f"{what} lists a number that it does not have")
    return np.cumsum(gaps.astype(np.int64) + 1) - 1, upper

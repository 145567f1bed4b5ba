"""How a column of integers is stored: as numbers or as differences, and in how many bits each.

The choice follows from the numbers alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Unsigned = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
_Number = TypeVar("_Number", np.int64, np.float64)

MOST_BITS = 56  # of a number in place: it spans at most eight bytes
DIFFERENCES = 0x80
_EXACT = 1 << 50  # below it, twice a difference and a half is exact as a float
_BLOCK = 1 << 14
_ONE = np.uint64(1)


def zigzag(values: Integers) -> Unsigned:
    """Signed numbers as unsigned ones, small for small: 0, -1, 1, -2 become 0, 1, 2, 3."""
    # Sums and comparisons are what NumPy does fastest.
    return ((values + values) ^ -(values < 0).astype(np.int64)).view(np.uint64)


def unzigzag(values: Unsigned) -> Integers:
    """The inverse of `zigzag`."""
    halves: Integers = (values >> _ONE).view(np.int64)
    signs: Integers = (values & _ONE).view(np.int64)
    return np.bitwise_xor(halves, -signs)


def _bit_lengths(values: Unsigned) -> Integers:
    """How many bits each number has, unsigned."""
    upper = (values >> np.uint64(32)).astype(np.float64)
    lower = (values & np.uint64(0xFFFFFFFF)).astype(np.float64)
    return np.where(upper > 0, np.frexp(upper)[1] + 32, np.frexp(lower)[1]).astype(np.int64)


def _exponents(values: Floats) -> Integers:
    """Bits of whole numbers, in place: a half more has an exponent for 0 too, and no other.

    Of twice a signed number they are those of its zigzag.
    """
    values += 0.5
    bits = values.view(np.int64)
    bits >>= 52
    bits &= 0x7FF
    bits -= 1022
    return bits


def _both_bit_lengths(values: Integers, firsts: Integers) -> Integers:
    """Bits of the numbers, unsigned, then of their differences to those before, in zigzag."""
    lowest, count = int(values.min()), len(values)
    if lowest <= -_EXACT or int(values.max()) >= _EXACT:
        signed = zigzag(differences(values, firsts, np.empty_like(values)))
        return _bit_lengths(np.concatenate([values.view(np.uint64), signed]))
    both = np.empty(2 * count)
    both[:count] = values
    twice = differences(both[:count], firsts, both[count:])
    twice += twice
    bits = _exponents(both)
    if lowest < 0:
        bits[:count][values < 0] = 64
    return bits


def _list_costs() -> Floats:
    """Bytes that a number of so many bits costs in the list, by the width of those in place."""
    bits, widths = np.arange(65)[:, None], np.arange(MOST_BITS + 1)[None, :]
    return np.where(bits > widths, 1.0 + (bits - widths + 6) // 7, 0.0)


_LIST_COSTS = _list_costs()
_WIDTHS = np.arange(MOST_BITS + 1.0)[None, :]


def _costs(counts: Integers, lengths: Integers) -> Floats:
    """Bits of each column, by its width, as numbers and then as differences.

    Counts say how many numbers of each column have so many bits, and then how many differences.
    """
    listed = (counts.reshape(-1, 65).astype(np.float64) @ _LIST_COSTS).reshape(2, len(lengths), -1)
    costs = lengths[:, None] * _WIDTHS + 8 * listed
    return np.concatenate([costs[0], costs[1]], axis=1)


def _cheapest(counts: Integers, lengths: Integers) -> npt.NDArray[np.uint8]:
    """Heads of least cost."""
    best = _costs(counts, lengths).argmin(axis=1)
    widths, is_difference = best % (MOST_BITS + 1), best > MOST_BITS
    heads: npt.NDArray[np.uint8] = (widths + DIFFERENCES * is_difference).astype(np.uint8)
    return heads


def differences(
    values: npt.NDArray[_Number], firsts: Integers, out: npt.NDArray[_Number]
) -> npt.NDArray[_Number]:
    """Each number less the one before it in its column."""
    np.subtract(values[1:], values[:-1], out=out[1:])
    out[firsts] = values[firsts]
    return out


def choose(values: Integers, lengths: Integers) -> npt.NDArray[np.uint8]:
    """The head of each column: its width, and a bit for differences.

    The smallest wins, numbers before differences, narrow before wide. A number in the list counts
    a byte for its place and those of its upper bits.
    """
    if len(values) <= _BLOCK:
        return _choose_few(values, lengths)
    ends = np.cumsum(lengths)
    firsts = ends - lengths
    # A few columns at a time: their numbers stay in the cache, and memory is used again.
    bounds = [0, *(np.flatnonzero(np.diff(firsts // _BLOCK)) + 1).tolist(), len(lengths)]
    heads = [
        _choose_few(values[firsts[first] : ends[last - 1]], lengths[first:last])
        for first, last in pairwise(bounds)
    ]
    return np.concatenate(heads)


def _choose_few(values: Integers, lengths: Integers) -> npt.NDArray[np.uint8]:
    return _cheapest(_count_bits(values, lengths), lengths)


def _count_bits(values: Integers, lengths: Integers) -> Integers:
    """How many numbers of each column have so many bits, and then how many differences."""
    count = 2 * len(lengths)
    bits = _both_bit_lengths(values, np.cumsum(lengths) - lengths)
    bits += np.repeat(np.arange(count) * 65, np.concatenate([lengths, lengths]))
    return np.bincount(bits, minlength=count * 65)


def find_cheapest(columns: Sequence[Integers]) -> int:
    """Which of some columns costs least; of equal ones the first."""
    lengths = np.array([len(column) for column in columns], np.int64)
    costs = _costs(_count_bits(np.concatenate(columns), lengths), lengths)
    return int(costs.min(axis=1).argmin())


def choose_constant(numbers: Integers, lengths: Integers) -> npt.NDArray[np.uint8]:
    """The heads of columns that have one number everywhere: the same as `choose` says."""
    count = len(numbers)
    counts = np.zeros((2 * count, 65), np.int64)
    counts[count:, 0] = lengths - 1
    bits = _bit_lengths(np.concatenate([numbers.view(np.uint64), zigzag(numbers)]))
    counts[np.arange(2 * count), bits] += np.concatenate([lengths, np.ones(count, np.int64)])
    return _cheapest(counts, lengths)

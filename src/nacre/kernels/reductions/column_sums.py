"""Sums down columns that lie beside each other, in the order in which NumPy adds up a dense row.

NumPy adds every eighth element of at most 128, then the eight sums by pairs, then what is left
over; longer rows are halves of such. Down columns it adds one row after the other, so each of
these steps is taken for all columns at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from nacre.kernels.interface.call import Array
from nacre.kernels.interface.fixed import FixedCall

_LANES, _LEAF = 8, 128
_WORTH = 800  # elements that are gathered into rows in the time of one call


def are_worth_it(before: int, size: int, behind: int) -> bool:
    """Whether sums of so many elements take longer by rows, which are gathered first."""
    return before * size * behind >= _WORTH * _count_calls(size)


def _count_calls(size: int) -> int:
    if size <= _LEAF:
        return 6
    half = size // 2 // _LANES * _LANES
    rest = 0 if 2 * half == size else _count_calls(size - half)
    return 1 + _count_calls(half) + rest


def column_sum_calls(x: Array, total: Array) -> Iterator[FixedCall]:
    """The calls that fill [before, behind] with the sums of [before, size, behind]."""
    before, size, behind = x.shape
    if size <= _LEAF:
        yield from _leaf_calls(x, total)
        return
    half = size // 2 // _LANES * _LANES
    if 2 * half == size and x.flags.c_contiguous:
        sums = np.empty((2 * before, behind), x.dtype)
        yield from column_sum_calls(x.reshape(2 * before, half, behind), sums)
        yield partial(np.add, sums[0::2], sums[1::2], total)
        return
    more = np.empty_like(total)
    yield from column_sum_calls(x[:, :half], total)
    yield from column_sum_calls(x[:, half:], more)
    yield partial(np.add, total, more, total)


def _leaf_calls(x: Array, total: Array) -> Iterator[FixedCall]:
    before, size, behind = x.shape
    whole = size // _LANES * _LANES
    if not whole:
        yield partial(np.add.reduce, x, axis=1, out=total)
        return
    lanes = np.empty((before, _LANES, behind), x.dtype)
    rows = x[:, :whole].reshape(before, -1, _LANES, behind)
    yield partial(np.add.reduce, rows, axis=1, out=lanes)
    sums = np.empty((before, 1 + size - whole, behind), x.dtype)
    last = sums[:, :1] if size > whole else total[:, None]
    for count in (4, 2, 1):
        pairs = np.empty((before, count, behind), x.dtype) if count > 1 else last
        yield partial(np.add, lanes[:, 0::2], lanes[:, 1::2], pairs)
        lanes = pairs
    if size > whole:
        yield partial(np.copyto, sums[:, 1:], x[:, whole:])
        yield partial(np.add.reduce, sums, axis=1, out=total)

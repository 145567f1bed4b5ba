"""Columns of a section: numbers as they are, or without the zeros that all of them end with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from nacre.base.binary.columns import Integers
from nacre.base.terms import fits_int64
from nacre.tcb.binary.pools import ReadPools

_MOST_SHIFT = 64


class Source(Protocol):
    """Where columns come from."""

    @property
    def pools(self) -> ReadPools:
        """What their numbers stand for."""

    def column(self, count: int) -> list[int]:
        """The next one, of so many numbers."""


Columns = list[Integers]


def add_column(columns: Columns, values: Sequence[int]) -> None:
    """Add a column, unless it is empty."""
    if values:
        columns.append(np.array(values, np.int64))


def add_aligned(columns: Columns, values: Sequence[int]) -> None:
    """Add how many bits are 0 at the end of all these numbers, and the numbers without them."""
    if values:
        ends = [value & -value for value in values if value]
        shift = min(ends).bit_length() - 1 if ends else 0
        add_column(columns, [shift])
        add_column(columns, [value >> shift for value in values])


def read_aligned(count: int, source: Source) -> list[int]:
    """The inverse of `add_aligned`."""
    if not count:
        return []
    (shift,) = source.column(1)
    if not 0 <= shift < _MOST_SHIFT:
        raise source.pools.broken(f"numbers cannot end with {shift:,} bits that are 0")
    values = [value << shift for value in source.column(count)]
    if not (fits_int64(min(values)) and fits_int64(max(values))):
        raise source.pools.broken("a number of more than 64 bits")
    return values

"""Columns of a section: numbers as they are, or by what they have in common.

That is the zeros that all of them end with, or that they rise evenly, each from one further up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from nacre.base.binary.column_forms import Integers, find_cheapest
from nacre.base.terms import fits_int64
from nacre.tcb.binary.pools import ReadPools

_MOST_SHIFT = 64
LEAST_PERIODIC = 16  # numbers of a column that has a period: of fewer it would save nothing
MOST_PERIOD = 16


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


def add_periodic(columns: Columns, values: Sequence[int]) -> None:
    """Add the period of numbers, and these as what they differ by from rising evenly in it."""
    if len(values) < LEAST_PERIODIC:
        add_column(columns, values)
        return
    numbers = np.array(values, np.int64)
    ways = [_without_rise(numbers, period) for period in range(MOST_PERIOD + 1)]
    period = find_cheapest(ways)
    add_column(columns, [period])
    columns.append(ways[period])


def _without_rise(numbers: Integers, period: int) -> Integers:
    """Second differences, each to the numbers one and two periods before; 0: the numbers."""
    if not period:
        return numbers
    found = numbers.copy()
    found[period:] -= 2 * numbers[:-period]
    found[2 * period :] += numbers[: -2 * period]
    return found


def read_periodic(count: int, source: Source) -> list[int]:
    """The inverse of `add_periodic`."""
    if count < LEAST_PERIODIC:
        return source.column(count)
    (period,) = source.column(1)
    if not 0 <= period <= MOST_PERIOD:
        raise source.pools.broken(f"numbers cannot have a period of {period:,}")
    numbers = np.array(source.column(count), np.int64)
    for phase in range(period):
        numbers[phase::period] = numbers[phase::period].cumsum().cumsum()
    values: list[int] = numbers.tolist()
    return values

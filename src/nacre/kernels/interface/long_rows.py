"""Numbers a channel repeated to rows that are long enough for NumPy.

The way to a row costs NumPy as much as tens of elements. Where one operand is the same for every
row it also gathers rows in a buffer first, unless they are longer than half of that.
"""

from __future__ import annotations

from math import ceil

_UNBUFFERED = 4100  # elements of rows that are not gathered


def repeats(places: int, channels: int, length: int) -> int:
    """How many places make a row of about such a length; they divide all of these."""
    wanted = length / channels
    most = min(places, ceil(16 * wanted))
    found = [n for n in range(1, most + 1) if places % n == 0]
    return min(found, key=lambda n: max(n / wanted, wanted / n))


def unbuffered_repeats(places: int, channels: int) -> int:
    """How many places make a row that is not gathered, or nearly so; they divide all of these."""
    least = min(places, -(-_UNBUFFERED // channels))
    found = (n for n in range(least, min(places, 16 * least) + 1) if places % n == 0)
    return next(found, repeats(places, channels, _UNBUFFERED))

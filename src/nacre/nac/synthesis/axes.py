"""Numbers at the axes of a chart: round ones, no two alike, none over another."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10

_LETTER = 7.0  # pixels, of the text of a chart
_GAP = 14.0  # pixels between two texts
_FACTORS = (1, 2, 5)
_CLOSE = 1e-9  # of a step: what rounding leaves


def round_step(span: float, most: int, least: float = 0.0) -> float:
    """The smallest of 1, 2 and 5 times powers of ten with at most so many steps in a span."""
    wanted = max(span / most, least)
    power = floor(log10(wanted))
    steps = (factor * 10.0**exponent for exponent in (power, power + 1) for factor in _FACTORS)
    return next(step for step in steps if step >= wanted * (1 - _CLOSE))


def round_numbers(low: float, high: float, most: int, least: float = 0.0) -> list[float]:
    """Multiples of a round step, `least` or more, from the first not below `low` to `high`."""
    step = round_step(high - low, most, least)
    first, last = ceil(low / step - _CLOSE), floor(high / step + _CLOSE)
    return [n * step for n in range(first, last + 1)]


def round_logarithmic(low: float, high: float, most: int) -> list[int]:
    """Round integers between two numbers above 0 for an axis of their logarithms.

    Over a decade and more 1, 2 and 5 times powers of ten, or powers alone where there are many;
    within less than a decade multiples of one step, as there would be none or one of these.
    """
    if high < 10 * low:
        return [round(n) for n in round_numbers(low, high, most, least=1.0) if n >= 1]
    powers = range(max(0, floor(log10(low))), ceil(log10(high)) + 1)
    for factors in (_FACTORS, (1,)):
        numbers = [factor * 10**power for power in powers for factor in factors]
        inside = [n for n in numbers if low <= n <= high]
        if len(inside) <= most:
            return inside
    return inside[:: ceil(len(inside) / most)]


def percent_texts(shares: Sequence[float]) -> list[str]:
    """Shares as texts with as many digits as tell them apart."""
    for digits in range(7):
        texts = [f"{share:.{digits}%}" for share in shares]
        if len(set(texts)) == len(shares):
            break
    return texts


def apart(texts: Sequence[str], middles: Sequence[float]) -> list[int]:
    """Which of the texts to write side by side so that none touches the one before."""
    kept: list[int] = []
    end = float("-inf")
    for at, (text, middle) in enumerate(zip(texts, middles, strict=True)):
        half = _LETTER * len(text) / 2
        if middle - half >= end + _GAP:
            kept.append(at)
            end = middle + half
    return kept

"""Scores of Unigram: 32 bits in the file, and the sum must be the library's to the last bit.

The `tokenizers` library reads the decimals of a `tokenizer.json` fast, not exactly: digits as an
integer, divided by a power of ten, which is one off in the last place now and then. A vocabulary
holds the number that was meant; a program adds up the number that the library reads for it.
"""

from __future__ import annotations

import math
import struct

_F32 = struct.Struct("<f")


def read_decimal(text: str) -> float:
    """A decimal as the library reads it."""
    digits, _, exponent = text.lower().partition("e")
    whole, _, behind = digits.lstrip("-").partition(".")
    power = int(exponent or 0) - len(behind)
    try:
        value = float(int(whole + behind))
        value = value * float(f"1e{power}") if power >= 0 else value / float(f"1e{-power}")
    except (OverflowError, ZeroDivisionError):
        return math.inf
    return -value if text.startswith("-") else value


def score_of(stored: float) -> float:
    """What a program adds up for a score of 32 bits."""
    return read_decimal(repr(stored))


def stored_score(score: float) -> float | None:
    """The 32 bits for a score; None where there are none that stand for it."""
    try:
        stored: float = _F32.unpack(_F32.pack(score))[0]
    except OverflowError:
        return None
    return stored if math.isfinite(stored) and score_of(stored) == score else None

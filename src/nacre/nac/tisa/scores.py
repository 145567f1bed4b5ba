"""Scores of Unigram: the sum must be the library's to the last bit.

`vocab.b` has 32 bits for a score. Those of SentencePiece need no more; trainers of the library make
scores of 64 bits, which stand beside it in a resource of ours (`nacre.scores.b`).

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


def round_score(score: float) -> float:
    """The nearest score of 32 bits, infinite where it is too large for them."""
    try:
        return float(_F32.unpack(_F32.pack(score))[0])
    except OverflowError:
        return math.copysign(math.inf, score)

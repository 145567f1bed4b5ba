"""Whole numbers in texts that users write: the digits 0 to 9, not those of other scripts."""

from __future__ import annotations


def is_digits(text: str) -> bool:
    """Whether a text is 0 to 9 only; `str.isdigit` also takes `\u00b2`, which no `int` reads."""
    return text.isascii() and text.isdigit()

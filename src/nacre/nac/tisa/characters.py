"""What a character is: its category, its small letters, its normal form, whatever Python's Unicode.

Categories are those of Unicode 16.0, small letters those of 17.0. Normal forms know Unicode 9.0:
characters that came later stay as they are and part what stands beside them. So it is in the
`tokenizers` library, whose parts have tables of these ages.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from functools import cache
from itertools import chain
from typing import Literal

from nacre.nac.tisa.character_data import INERT, LOWERCASE_SINCE_14, SINCE_14, SINCE_17, Ranges

_LONG_TEXT = 1024
_LONG_RUN = 32
_DOUBLE_MARKS = "\u0f73\u0f75\u0f81"  # two marks each, and of class 0 themselves
Form = Literal["NFC", "NFD", "NFKC", "NFKD"]


class CharacterSet:
    """A set of code points as ranges in order."""

    __slots__ = ("_firsts", "_lasts")

    def __init__(self, listed: Ranges) -> None:
        joined = join_ranges(listed)
        self._firsts = [first for first, _ in joined]
        self._lasts = [last for _, last in joined]

    def __contains__(self, point: int) -> bool:
        at = bisect_right(self._firsts, point) - 1
        return at >= 0 and point <= self._lasts[at]


def join_ranges(listed: Ranges) -> Ranges:
    """Ranges in order, those that touch joined."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(listed):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((first, last))
    return tuple(joined)


def code_points(listed: Ranges) -> list[int]:
    """Every code point of some ranges."""
    return list(chain.from_iterable(range(first, last + 1) for first, last in listed))


@cache
def _categories_since_14() -> tuple[list[tuple[int, int, str]], list[int]]:
    """What Unicode 15.0 and later say, as ranges in order, and where these begin."""
    known = [(a, b, name) for name, listed in SINCE_14.items() for a, b in listed]
    made = sorted(known + [(first, last, "Cn") for first, last in SINCE_17])
    return made, [first for first, _, _ in made]


def category(character: str) -> str:
    """The general category in Unicode 16.0."""
    ranges_, firsts = _categories_since_14()
    point = ord(character)
    at = bisect_right(firsts, point) - 1
    if at >= 0 and point <= ranges_[at][1]:
        return ranges_[at][2]
    return unicodedata.category(character)


@cache
def _lowercase_table() -> dict[int, str]:
    """Small letters that differ from `str.lower`, which looks at neighbours for a sigma."""
    made = {0x3A3: "\u03c3"}
    for first, last, small in LOWERCASE_SINCE_14:
        made.update({point: chr(small + point - first) for point in range(first, last + 1)})
    return made


def lowercase(text: str) -> str:
    """Small letters, character by character: a sigma at the end of a word is one as any other."""
    return text if text.isascii() and text.islower() else text.translate(_lowercase_table()).lower()


@cache
def _inert_pattern() -> re.Pattern[str]:
    listed = "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in INERT)
    return re.compile(f"[{listed}]")


def is_inert(character: str) -> bool:
    """Whether a character came after Unicode 9.0, so that normal forms leave it alone."""
    return _inert_pattern().match(character) is not None


def normal_form(form: Form, text: str) -> str:
    """A normal form; what came after Unicode 9.0 stays and parts the rest."""
    if text.isascii():
        return text
    parts: list[str] = []
    at = 0
    for match in _inert_pattern().finditer(text):
        parts += [_normalize(form, text[at : match.start()]), match.group()]
        at = match.end()
    parts.append(_normalize(form, text[at:]))
    return "".join(parts)


def _normalize(form: Form, text: str) -> str:
    """As `unicodedata` has it, which takes quadratic time to order a long run of marks."""
    if len(text) < _LONG_TEXT:
        return unicodedata.normalize(form, text)
    return unicodedata.normalize(form, _long_runs().sub(_sort_run, text))


@cache
def _long_runs() -> re.Pattern[str]:
    """Marks in a row, too many of them."""
    marks = "".join(c for c in map(chr, range(0x300, 0x20000)) if unicodedata.combining(c))
    return re.compile(f"[{marks}{_DOUBLE_MARKS}]{{{_LONG_RUN},}}")


def _sort_run(run: re.Match[str]) -> str:
    parts = "".join(unicodedata.normalize("NFD", mark) for mark in run.group())
    return "".join(sorted(parts, key=unicodedata.combining))


@cache
def byte_alphabet() -> tuple[str, ...]:
    """The letter of every byte: printable Latin-1 stands for itself, the rest goes from U+0100."""
    plain = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return tuple(chr(byte if byte in plain else next(others)) for byte in range(0x100))


@cache
def _byte_table() -> dict[int, str]:
    return dict(enumerate(byte_alphabet()))


def byte_letters(text: str) -> str:
    """The UTF-8 bytes of a text as letters."""
    return text.encode("utf-8").decode("latin-1").translate(_byte_table())


@cache
def letter_bytes() -> dict[str, int]:
    """The byte of every letter."""
    return {letter: byte for byte, letter in enumerate(byte_alphabet())}

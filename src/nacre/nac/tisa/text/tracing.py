"""Changes of a text that can say where the new characters come from.

Every new character has the place in the original text of one old character. Which one follows the
`tokenizers` library, whose offsets ours must equal: what is put in has the place of the character
before it, what takes the place of another has that one's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import chain, repeat
from typing import NamedTuple

Origins = list[int] | None  # the old character of every new one; None: each its own
_LONG_TEXT = 1024  # from here on a pattern is worth its making
_MOST_CACHED = 1 << 15
_LONGEST_CACHED = 64
NOWHERE = -1  # in front of the first character


class TextChange(NamedTuple):
    """What a step makes of a text, without and with the origins of its characters."""

    change: Callable[[str], str]
    trace: Callable[[str], tuple[str, Origins]]


def characterwise(change: Callable[[str], str]) -> TextChange:
    """A change that takes every character alone and makes none, one or several of it."""

    def find(text: str) -> tuple[str, Origins]:
        changed = change(text)
        if changed == text:
            return text, None
        sizes = {character: len(change(character)) for character in set(text)}
        if set(sizes.values()) == {1}:
            return changed, None
        return changed, _origins(text, sizes)

    known = lru_cache(_MOST_CACHED)(find)  # texts repeat their words

    def trace(text: str) -> tuple[str, Origins]:
        return known(text) if len(text) <= _LONGEST_CACHED else find(text)

    return TextChange(change, trace)


def _origins(text: str, sizes: Mapping[str, int]) -> list[int]:
    """The origins of characters each of which becomes so many."""
    if len(text) < _LONG_TEXT:
        return list(chain.from_iterable(repeat(at, sizes[c]) for at, c in enumerate(text)))
    others = "".join(re.escape(character) for character, size in sizes.items() if size != 1)
    origins: list[int] = []
    at = 0
    for match in re.finditer(f"[{others}]", text):
        origins += range(at, match.start())
        at = match.end()
        origins += repeat(at - 1, sizes[match.group()])
    origins += range(at, len(text))
    return origins


def replace_matches(
    text: str, matches: Iterable[tuple[int, int]], value: str
) -> tuple[str, Origins]:
    """Let some parts become a text, which comes from the last character of each."""
    parts: list[str] = []
    origins: list[int] = []
    at = 0
    for start, end in matches:
        parts += (text[at:start], value)
        origins += range(at, start)
        origins += repeat(end - 1, len(value))
        at = end
    if not parts:
        return text, None
    parts.append(text[at:])
    origins += range(at, len(text))
    return "".join(parts), origins


def literal_matches(text: str, wanted: str) -> Iterable[tuple[int, int]]:
    """Where a text stands in another, from the left."""
    at = text.find(wanted)
    while at >= 0:
        yield at, at + len(wanted)
        at = text.find(wanted, at + len(wanted))


def put_in_front(text: str, value: str) -> tuple[str, Origins]:
    """A text with another in front, which comes from its first character."""
    if not text:
        return text, None
    return value + text, [*repeat(0, len(value)), *range(len(text))]


def follow_changes(changes: Iterable[int], count: int) -> list[int]:
    """Origins out of counts: 1 puts a character in, 0 takes an old one's place, -n drops n more."""
    origins: list[int] = []
    at = 0
    for change in changes:
        if change > 0:
            origins.append(at - 1)
        else:
            origins.append(min(at, count - 1))
            at += 1 - change
    return origins

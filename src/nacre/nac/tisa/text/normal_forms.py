"""Normal forms with origins: what decomposes, is sorted and composes again keeps its count."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import repeat

from nacre.nac.tisa.characters import Form, is_inert, normal_form
from nacre.nac.tisa.text.tracing import Origins, TextChange, follow_changes

_BESIDE_ASCII = re.compile(r"[\x00-\x7f]?[^\x00-\x7f]+")
# A character, and what it does to the count of characters (see `follow_changes`).
_Counted = tuple[str, int]


def normal_form_change(form: Form) -> TextChange:
    """The normal form as a change."""

    def trace(text: str) -> tuple[str, Origins]:
        changed = normal_form(form, text)
        if changed == text:
            return text, None
        return changed, follow_changes(_changes(form, text), len(text))

    return TextChange(lambda text: normal_form(form, text), trace)


def _changes(form: Form, text: str) -> Iterator[int]:
    """What every new character does to the count; ASCII changes beside other characters alone."""
    at = 0
    for match in _BESIDE_ASCII.finditer(text):
        yield from repeat(0, match.start() - at)
        counted = _sort_marks(_decompose(match.group(), "NFKD" if "K" in form else "NFD"))
        if form.endswith("C"):
            counted = _compose(counted)
        yield from (change for _, change in counted)
        at = match.end()
    yield from repeat(0, len(text) - at)


@lru_cache(1 << 14)
def _parts(character: str, form: Form) -> tuple[_Counted, ...]:
    made = normal_form(form, character)
    return tuple((part, int(at > 0)) for at, part in enumerate(made))


def _decompose(text: str, form: Form) -> list[_Counted]:
    return [part for character in text for part in _parts(character, form)]


def _class(character: str) -> int:
    return 0 if is_inert(character) else unicodedata.combining(character)


def _sort_marks(counted: list[_Counted]) -> list[_Counted]:
    """Marks in a row in the order of their classes."""
    made: list[_Counted] = []
    marks: list[tuple[int, _Counted]] = []
    for each in counted:
        order = _class(each[0])
        if order:
            marks.append((order, each))
            continue
        made += (mark for _, mark in sorted(marks, key=lambda pair: pair[0]))
        marks.clear()
        made.append(each)
    return made + [mark for _, mark in sorted(marks, key=lambda pair: pair[0])]


@lru_cache(1 << 14)
def _composite(first: str, second: str) -> str | None:
    if is_inert(first) or is_inert(second):
        return None
    made = unicodedata.normalize("NFC", first + second)
    return made if len(made) == 1 and not is_inert(made) else None


def _compose(counted: Iterable[_Counted]) -> list[_Counted]:
    """Join starters with what follows and is not blocked; a pair that joins counts as one less."""
    made: list[_Counted] = []
    starter = -1  # where the last starter stands in `made`
    last = 0  # the class of the last mark behind it that stayed
    for character, change in counted:
        order = _class(character)
        is_near = starter >= 0 and (last < order or len(made) == starter + 1)
        joined = _composite(made[starter][0], character) if is_near else None
        if joined:
            made[starter] = joined, made[starter][1] + change - 1
            continue
        if order == 0:
            starter, last = len(made), 0
        else:
            last = order
        made.append((character, change))
    return made

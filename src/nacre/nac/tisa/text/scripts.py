"""Scripts: where a text goes from one to another."""

from __future__ import annotations

from bisect import bisect_right
from functools import cache

from nacre.nac.tisa.character_data import ranges
from nacre.nac.tisa.text.script_data import SCRIPTS

ANY = 0  # the script of what belongs to every one


@cache
def _table() -> tuple[list[int], list[int], list[int]]:
    """Ranges in order: their first and last characters, and the numbers of their scripts."""
    listed = [
        (first, last, number)
        for number, script in enumerate(SCRIPTS.split("|"))
        for first, last in ranges(script)
    ]
    firsts, lasts, numbers = zip(*sorted(listed), strict=True)
    return list(firsts), list(lasts), list(numbers)


@cache
def script_of(character: str) -> int:
    """The number of a character's script."""
    firsts, lasts, numbers = _table()
    point = ord(character)
    at = bisect_right(firsts, point) - 1
    return numbers[at] if at >= 0 and point <= lasts[at] else ANY


def script_starts(text: str) -> list[int]:
    """Where a script begins that is another than the one before it.

    What comes before the first of them belongs to no script, and to no fragment either.
    """
    starts: list[int] = []
    last = ANY
    for at, character in enumerate(text):
        script = script_of(character)
        if script not in (ANY, last):
            starts.append(at)
            last = script
    return starts

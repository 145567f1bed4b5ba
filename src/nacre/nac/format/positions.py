"""Places in a file that is no text: a byte, its section, an instruction.

A finding's location has line 1 and the byte's offset plus one as its column; its message says the
same in words, and `data` has it for tools.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple

from nacre.base.diagnostics import Diagnostic
from nacre.base.rules import Rule
from nacre.base.source import Source, Span

_LIST = re.compile(r"\[([^\[\]]*)\]")
_SHOWN_ITEMS = 16  # of a list
_MOST_PLAIN = 400  # characters of a message whose lists are not looked at
_LONGEST = 1000


class _UnreadText(str):
    """Stands for the bytes of a file where a text is expected: only its length is asked for."""

    __slots__ = ("_length",)
    _length: int

    def __new__(cls, length: int) -> _UnreadText:
        made = super().__new__(cls)
        made._length = length
        return made

    def __len__(self) -> int:
        return self._length


class BinarySource(Source):
    """A file of bytes as a source: one line, a column for each byte."""

    def __init__(self, name: str, size: int) -> None:
        super().__init__(name, _UnreadText(size), is_shown=False)

    def position(self, offset: int) -> tuple[int, int]:
        """Line 1, and the byte counted from 1."""
        return 1, offset + 1


class Position(NamedTuple):
    """Where something stands in a file."""

    offset: int
    section: str = ""  # the tag; empty for the header
    instruction: int | None = None

    def __str__(self) -> str:
        at = f"byte {self.offset:,}"
        if self.instruction is not None:
            return f"instruction {self.instruction} at {at}"
        return f"{self.section.strip() or 'header'}, {at}"


def shorten(message: str) -> str:
    """A message in which long lists are shown by their ends, and which is cut where it is long."""
    made = _LIST.sub(_shortened_list, message) if len(message) > _MOST_PLAIN else message
    return made if len(made) <= _LONGEST else f"{made[:_LONGEST]}..."


def _shortened_list(match: re.Match[str]) -> str:
    items = match.group(1).split(", ")
    if len(items) <= _SHOWN_ITEMS:
        return match.group()
    half = _SHOWN_ITEMS // 2
    return f"[{', '.join((*items[:half], '...', *items[-half:]))}]"


def finding(
    rule: Rule, source: Source, place: Position, message: str, help: str | None = None
) -> Diagnostic:
    """A finding about a place in a file."""
    message = shorten(message)
    offset = min(place.offset, len(source.text))
    span = Span(source, offset, offset)
    diagnostic = rule.at(span, f"{place}: {message}", help=help)
    data = {"offset": place.offset, "section": place.section.strip() or "header"}
    if place.instruction is not None:
        data["instruction"] = place.instruction
    return replace(diagnostic, data=data)

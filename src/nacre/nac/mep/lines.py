"""The text of a plan as words with their places."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nacre.base.excerpt import backquote
from nacre.base.rules import Rule
from nacre.base.source import Source, Span
from nacre.nac.rules.plans import NAC80

_TOKEN = re.compile(
    r"""(?P<comment>;.*)
    |(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<number>[+-]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?![\w.])|[+-](?:inf|nan)\b)
    |(?P<slot>%\w+)
    |(?P<const>\$\w+)
    |(?P<directive>\.[A-Za-z]+)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<mark>[\[\],:=])""",
    re.VERBOSE | re.ASCII,
)
_SPACE = re.compile(r"[ \t\r]*")


class LineError(Exception):
    """What is wrong with a line, and where."""

    def __init__(self, rule: Rule, span: Span, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.diagnostic = rule.at(span, message, help=help)


@dataclass(frozen=True, slots=True)
class Token:
    """A word of the text."""

    kind: str
    text: str
    span: Span


class Line:
    """The words of a line, taken one after the other."""

    def __init__(self, source: Source, number: int) -> None:
        start = source.line_starts[number - 1]
        text = source.line_text(number)
        self._tokens = list(_tokens(source, start, text))
        self._end = source.span(start + len(text), start + len(text))
        self._at = 0

    @property
    def next(self) -> Token | None:
        """The next word, which stays."""
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    @property
    def place(self) -> Span:
        """Where the next word stands, or the end of the line."""
        return self.next.span if self.next is not None else self._end

    def has(self, kind: str, text: str | None = None, ahead: int = 0) -> bool:
        """Whether the next word, or one behind it, is of a kind."""
        at = self._at + ahead
        if at >= len(self._tokens):
            return False
        token = self._tokens[at]
        return token.kind == kind and text in (None, token.text)

    def take(self, kind: str, what: str, text: str | None = None) -> Token:
        """The next word, which must be of a kind."""
        found = self.next
        if found is None or not self.has(kind, text):
            shown = backquote(found.text) if found is not None else "the end of the line"
            raise LineError(NAC80, self.place, f"found {shown}, expected {what}")
        self._at += 1
        return found

    def take_mark(self, text: str) -> None:
        """The next word, which must be this mark."""
        self.take("mark", f"`{text}`", text)


def _tokens(source: Source, start: int, text: str) -> Iterator[Token]:
    at = _end_of_space(text, 0)
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            span = source.span(start + at, start + at + 1)
            what = "a text without an end" if text[at] == '"' else backquote(text[at])
            raise LineError(NAC80, span, f"found {what}, expected an operand")
        kind = str(match.lastgroup)
        if kind != "comment":
            yield Token(kind, match.group(), source.span(start + at, start + match.end()))
        at = _end_of_space(text, match.end())


def _end_of_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()

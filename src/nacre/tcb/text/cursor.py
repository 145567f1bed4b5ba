"""Where the reader of a text stands, and how it refuses what it finds."""

from __future__ import annotations

from collections.abc import Iterable

from nacre.base.diagnostics import Diagnostic
from nacre.base.rules import Rule
from nacre.base.source import Source, Span
from nacre.tcb.rules.text import TCB02
from nacre.tcb.text.tokens import Token


class Refused(Exception):  # noqa: N818 - a way out of a statement, which makes it a finding
    """A statement breaks a promise."""

    def __init__(self, finding: Diagnostic) -> None:
        super().__init__(finding.message)
        self.finding = finding


class Cursor:
    """A place among tokens; it never goes behind the last, which stands for the end."""

    def __init__(self, source: Source, tokens: list[Token]) -> None:
        self._source = source
        self._tokens = tokens
        self.at = 0

    @property
    def token(self) -> Token:
        """The one at hand."""
        return self._tokens[self.at]

    @property
    def following(self) -> Token:
        """The one behind it."""
        return self._tokens[min(self.at + 1, len(self._tokens) - 1)]

    def take(self) -> Token:
        """The token at hand, and go on."""
        token = self._tokens[self.at]
        if token.kind != "end":
            self.at += 1
        return token

    def accept(self, text: str) -> bool:
        """Whether this word or mark was at hand, and was taken."""
        token = self._tokens[self.at]
        if token.text != text or token.kind not in ("word", "mark"):
            return False
        self.at += 1
        return True

    def is_at(self, text: str) -> bool:
        """Whether this word or mark is at hand."""
        token = self._tokens[self.at]
        return token.text == text and token.kind in ("word", "mark")

    def require(self, text: str, what: str) -> None:
        """Take this word or mark."""
        if not self.accept(text):
            raise self.unexpected(f"`{text}` {what}".rstrip())

    def unexpected(self, expected: str, help: str | None = None) -> Refused:
        """What stands here is not what was expected."""
        message = f"found {self.token.description}, expected {expected}"
        return self.refusal(TCB02, self.token, message, help)

    def refusal(self, rule: Rule, token: Token, message: str, help: str | None = None) -> Refused:
        """A finding at a token."""
        span = self._source.span(token.start, token.end)
        return Refused(rule.at(span, message, help=help))

    def head_span(self, first: int) -> Span:
        """What was read from a token on, of its own line."""
        last = first
        while last + 1 < self.at and not self._tokens[last + 1].is_first:
            last += 1
        return self._source.span(self._tokens[first].start, self._tokens[last].end)

    def skip_to_statement(self, words: Iterable[str]) -> None:
        """Go to where the next statement begins a line, to a brace, or to the end."""
        known = frozenset(words)
        self.take()
        while not self._is_beginning(known):
            self.take()

    def _is_beginning(self, words: frozenset[str]) -> bool:
        token = self.token
        if token.kind == "end" or token.text in ("{", "}"):
            return True
        # A clause `wait` may begin a line, too; blocks have a position.
        is_clause = token.text == "wait" and self.following.text != "@"
        return token.is_first and token.kind == "word" and token.text in words and not is_clause

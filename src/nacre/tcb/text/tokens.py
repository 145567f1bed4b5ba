"""The tokens of an assembler text."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from nacre.base.diagnostics import Diagnostic
from nacre.base.excerpt import backquote
from nacre.base.source import Source
from nacre.tcb.limits import MAX_FINDINGS
from nacre.tcb.rules.text import TCB01

TokenKind = Literal["word", "integer", "number", "string", "mark", "end"]

WORD: Final = r"[A-Za-z_][A-Za-z0-9_.]*"
_TOKEN = re.compile(
    rf"""(?P<blank>[ \t\r\n]+|\#[^\n]*)
    |(?P<word>{WORD})
    |(?P<number>[0-9]+(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+))
    |(?P<integer>0[xX][0-9a-fA-F]+|[0-9]+)
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<mark>>=|[{{}}\[\](),:@+\-*/=])""",
    re.VERBOSE,
)


class Token(NamedTuple):
    """A piece of the text, and whether it is the first on its line."""

    kind: TokenKind
    text: str
    start: int
    is_first: bool

    @property
    def end(self) -> int:
        """Behind its last character."""
        return self.start + len(self.text)

    @property
    def description(self) -> str:
        """As messages name it."""
        return "the end of the text" if self.kind == "end" else backquote(self.text)


def tokens_of(source: Source, findings: list[Diagnostic]) -> list[Token]:
    """The tokens, one for the end included; what is none is reported and left out."""
    text, at, is_first = source.text, 0, True
    tokens: list[Token] = []
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            at = _report_odd(source, at, findings)
            if len(findings) >= MAX_FINDINGS:
                break
            continue
        at = found.end()
        kind = found.lastgroup
        if kind == "blank":
            is_first = is_first or "\n" in found[0]
            continue
        tokens.append(Token(kind, found[0], found.start(), is_first))  # type: ignore[arg-type]
        is_first = False
    tokens.append(Token("end", "", len(text), True))
    return tokens


def _report_odd(source: Source, at: int, findings: list[Diagnostic]) -> int:
    """Say what is wrong with a character, and where to go on."""
    if source.text[at] == '"':
        end = source.text.find("\n", at)
        end = len(source.text) if end < 0 else end
        findings.append(
            TCB01.at(
                source.span(at, end),
                "the string does not end on its line",
                help='write `"` at its end, and a line break inside as `\\n`',
            )
        )
        return end
    character = backquote(source.text[at])
    message = f"{character} begins nothing that an assembler text has"
    findings.append(TCB01.at(source.span(at, at + 1), message))
    return at + 1

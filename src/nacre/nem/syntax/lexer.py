"""Text to tokens. A token is its text and where it starts; its kind shows in its first character.

Dotted words (`transfer.async`, `opcode.mandatory`, `gemm.float`) are one token. No token spans a
line, so the text is cut at line ends and taken in chunks: that bounds memory on large programs.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from array import array
from collections.abc import Iterator
from itertools import accumulate, compress, islice

from msgspec import Struct

from nacre.base.diagnostics import Diagnostic, Fix
from nacre.base.excerpt import backquote
from nacre.base.fixes import replacement_fix
from nacre.base.source import Source, Span
from nacre.nem.spec.limits import MAX_DIAGNOSTICS
from nacre.nem.spec.rules.lexical import LEX01, LEX02, LEX03
from nacre.nem.syntax.ast import Comment

_PIECE = re.compile(
    r"""[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*
    |   [ \t\r\n]+
    |   \#[^\r\n]*
    |   \d\w*(?:\.(?!\.)\w*)*(?:(?<=[eE])[+-]\d+)?       # well formed or not: judged later
    |   \.\.
    |   \.\d\w*
    |   [-+*/()\[\]{},:;=@<>.]
    |   "[^"\\\r\n]*(?:\\[^\r\n]?[^"\\\r\n]*)*"?        # unrolled: no backtracking stack
    |   '[^'\r\n]*'                                     # a string in the wrong quotes
    |   [^ \t\r\n\#\w"+*/()\[\]{},:;=@<>.-]+ | .
    """,
    re.ASCII | re.VERBOSE,
)
_BLANK = frozenset(" \t\r\n#")
_NUMBER = re.compile(r"\d+(?:\.\d+(?:[eE][+-]?\d+)?)?", re.ASCII)
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"')  # possessive: an endless one fails at once
_LEGAL_FIRST = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-+*/()[]{},:;=@<>")
_CHUNK = 1 << 16
_LONGEST_CUT = 1 << 20
_NOT = bytes([1, 0]) + bytes(254)  # turns a mask of 0 and 1 round
_MOST_SHOWN = 64  # of a token in a message; an unclosed string may be a whole file

# The parser looks at most this far past the token at hand.
LOOKAHEAD = 6


class Tokens(Struct, frozen=True):
    """The tokens of a source, ended by empty ones; comments and what could not be read."""

    texts: list[str]
    starts: array[int]
    comments: tuple[Comment, ...]
    diagnostics: tuple[Diagnostic, ...]
    illegal: tuple[int, ...]  # offsets of characters that were left out


def tokenize(source: Source) -> Tokens:
    """Read a source into tokens; what cannot be read is reported and left out."""
    texts: list[str] = []
    starts: array[int] = array("q")
    comments: list[Comment] = []
    suspicious: set[str] = set()
    for at, pieces in _chunks(source.text):
        blanks = {piece for piece in set(pieces) if piece[0] in _BLANK}
        is_token = [piece not in blanks for piece in pieces]
        offsets = list(accumulate(map(len, pieces), initial=at))
        if any(piece[0] == "#" for piece in blanks):
            comments += [
                Comment(offset, offset + len(piece.rstrip()), piece.rstrip())
                for piece, offset in zip(pieces, offsets, strict=False)
                if piece[0] == "#"
            ]
        chunk_texts = list(map(sys.intern, compress(pieces, is_token)))
        suspicious |= {t for t in set(chunk_texts) if t[0] not in _LEGAL_FIRST and _is_bad(t)}
        texts += chunk_texts
        starts.extend(compress(offsets, is_token))
    diagnostics, illegal = _report(source, texts, starts, suspicious)
    texts += [""] * LOOKAHEAD
    starts.extend([len(source.text)] * LOOKAHEAD)
    return Tokens(texts, starts, tuple(comments), tuple(diagnostics), illegal)


def _chunks(text: str) -> Iterator[tuple[int, list[str]]]:
    """Where a chunk starts, and the pieces that it falls into."""
    at, size = 0, len(text)
    while at < size:
        cut = text.find("\n", at + _CHUNK) + 1 or size
        if cut - at <= _LONGEST_CUT:
            yield at, _PIECE.findall(text[at:cut])
        else:  # an endless line: slower, but no list of all its pieces
            matches, start = _PIECE.finditer(text, at, cut), at
            while pieces := [match[0] for match in islice(matches, _CHUNK)]:
                yield start, pieces
                start += sum(map(len, pieces))
        at = cut


def _is_bad(text: str) -> bool:
    first = text[0]
    if first in "0123456789":
        return _NUMBER.fullmatch(text) is None
    if first == '"':
        return _STRING.fullmatch(text) is None
    return text not in (".", "..")


def _report(
    source: Source, texts: list[str], starts: array[int], suspicious: set[str]
) -> tuple[list[Diagnostic], tuple[int, ...]]:
    """Diagnose the bad tokens; those that no parser could use are taken out of the lists."""
    if not suspicious:
        return [], ()
    bad = (index for index, text in enumerate(texts) if text in suspicious)
    findings = [
        _explain(source, texts[index], starts[index]) for index in islice(bad, MAX_DIAGNOSTICS)
    ]
    unusable = {text for text in suspicious if text[0] not in '0123456789".'}
    dropped = bytearray(text in unusable for text in texts)
    is_kept = dropped.translate(_NOT)
    offsets = tuple(compress(starts, dropped))
    texts[:] = compress(texts, is_kept)
    starts[:] = array("q", compress(starts, is_kept))
    return findings, offsets


def _explain(source: Source, text: str, start: int) -> Diagnostic:
    span = source.span(start, start + len(text))
    text = text[:_MOST_SHOWN]
    if text[0] == '"':
        return LEX02.at(
            span,
            f"string {backquote(text, 24)} is not closed before the end of the line",
            help='end it with `"`; inside, write `\\"` for a quote and `\\\\` for a backslash',
        )
    if text[0] in ".0123456789":
        fix = _number_fix(span)
        return LEX03.at(span, f"{backquote(text)} is not a number", help=_fix_number(text), fix=fix)
    return LEX01.at(span, f"unexpected character {_describe(text)}", help=_fix_character(text))


def _number_fix(span: Span) -> Fix | None:
    """The same number, written as the language writes it."""
    text = span.source.text[span.start : span.end]
    if len(text) > _MOST_SHOWN:
        return None
    if re.fullmatch(r"\.[0-9]+([eE][+-]?[0-9]+)?", text):
        return replacement_fix(span, f"0{text}")
    if re.fullmatch(r"[0-9]+\.", text):
        return replacement_fix(span, f"{text}0")
    if match := re.fullmatch(r"([0-9]+)([eE][+-]?[0-9]+)", text):
        return replacement_fix(span, f"{match[1]}.0{match[2]}")
    if re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}|0[bB][01]{1,64}|0[oO][0-7]{1,21}", text):
        return replacement_fix(span, str(int(text, 0)))
    return None


def _fix_number(text: str) -> str:
    if text[0] == ".":
        return f"a float needs digits on both sides of the point: `0{text}`"
    if text.count(".") > 1:
        return "a number has one point at most"
    if text.endswith("."):
        return f"a float needs digits on both sides of the point: `{text}0`"
    whole, exponent = re.match(r"[0-9]+", text), re.fullmatch(r"([0-9]+)([eE][+-]?[0-9]+)", text)
    if exponent:
        return f"a float needs a point: `{exponent[1]}.0{exponent[2]}`"
    if text[:2] in ("0x", "0X", "0b", "0B", "0o", "0O"):
        return "integers are written in decimal"
    return f"a name cannot start with a digit; the number would be `{whole[0] if whole else 0}`"


def _describe(text: str) -> str:
    first = text[0]
    if first.isprintable() and not first.isspace():
        return backquote(text, 16)
    name = unicodedata.name(first, "control character").lower()
    return f"U+{ord(first):04X} ({name})"


def _fix_character(text: str) -> str | None:
    if text[0] in "%!&|~^":
        return "the operators are `+`, `-`, `*`, `/` and `mod`"
    if text[0] in "'`\u2018\u2019\u201c\u201d":
        return 'strings stand between `"` and `"`'
    return None

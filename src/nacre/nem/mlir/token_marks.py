"""Where the tokens of statements stood that were not written as the formatter writes them.

A location has the start and the end of a statement. Where its tokens stand between those follows
from the canonical form; a statement in another form says it itself, so that findings about a part
of it have the right column.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from nacre.base.source import Source
from nacre.nem.mlir.operation_spans import OperationSpan
from nacre.nem.syntax.lexer import Tokens

TOKENS = "nem.tokens"


class PlacedToken(NamedTuple):
    """A token, and where it stands."""

    text: str
    line: int
    column: int


class Page(Struct, frozen=True):
    """A text with its tokens, and the places of what becomes operations."""

    source: Source
    tokens: Tokens
    spans: Sequence[OperationSpan]

    def heads(self) -> Iterator[list[PlacedToken]]:
        """The tokens of each place, up to where the next one begins."""
        starts, texts = self.tokens.starts, self.tokens.texts
        closings = [span.closing for span in self.spans if span.closing is not None]
        anchors = sorted([*(span.start for span in self.spans), *closings])
        anchors.append(len(self.source.text))
        for span in self.spans:
            first = bisect_left(starts, span.start)
            last = bisect_left(starts, anchors[bisect_left(anchors, span.start) + 1])
            while last > first and texts[last - 1] == ";":
                last -= 1
            yield [
                PlacedToken(text, *self.source.position(start))
                for text, start in zip(texts[first:last], starts[first:last], strict=True)
            ]


def token_attributes(written: Page, canonical: Page) -> list[list[str]]:
    """For each place what says where its tokens stood; nothing where that follows."""
    pairs = zip(written.heads(), canonical.heads(), strict=True)
    return [_attribute(original, expected) for original, expected in pairs]


def _attribute(original: list[PlacedToken], expected: list[PlacedToken]) -> list[str]:
    if len(original) != len(expected):
        return []
    ordered = _in_order_of(original, expected)
    if _relative(ordered) == _relative(expected):
        return []
    line = original[0].line
    numbers = (f"{token.line - line}, {token.column}" for token in ordered[1:])
    return [f"{TOKENS} = array<i32: {', '.join(numbers)}>"]


def _relative(tokens: list[PlacedToken]) -> list[tuple[int, int]]:
    """Places that tell whether two statements look the same; the first line may begin anywhere."""
    _, line, column = tokens[0]
    return [(t.line - line, t.column - column if t.line == line else t.column) for t in tokens]


def _in_order_of(original: list[PlacedToken], expected: list[PlacedToken]) -> list[PlacedToken]:
    """The tokens of a statement in the order of its canonical form: `src` may stand before `dst`.

    Commas stay where they are.
    """
    found, wanted = _arguments(original), _arguments(expected)
    by_name = {original[span.start].text: span for span in found}
    names = [expected[span.start].text for span in wanted]
    if [original[span.start].text for span in found] == names or {*names} != by_name.keys():
        return original
    chosen = [by_name[name] for name in names]
    if [len(span) for span in chosen] != [len(span) for span in wanted]:
        return original
    ordered = [*original[: found[0].start]]
    for before, span in zip(found, chosen, strict=True):
        ordered += [*original[span.start : span.stop], *original[before.stop : before.stop + 1]]
    return [*ordered, *original[found[-1].stop + 1 :]]


def _arguments(tokens: Sequence[PlacedToken]) -> list[range]:
    """The arguments in the first parentheses of a statement, as indices of their tokens."""
    found: list[range] = []
    depth = start = 0
    for at, token in enumerate(tokens):
        if token.text in _OPENING:
            depth += 1
            start = at + 1 if depth == 1 else start
        elif depth == 1 and token.text in (",", ")"):
            found += [range(start, at)] * (at > start)
            start = at + 1
        if token.text in _CLOSING:
            depth -= 1
            if depth == 0:
                break
    return found


_OPENING, _CLOSING = "([", ")]"

"""Where the tokens of statements stood that were not written as the formatter writes them.

A location has the start and the end of a statement. Where its tokens stand between those follows
from the canonical form; a statement in another form says it itself, so that findings about a part
of it have the right column.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from msgspec import Struct

from nacre.base.source import Source
from nacre.nem.mlir.operation_spans import OperationSpan
from nacre.nem.syntax.lexer import Tokens

TOKENS = "nem.tokens"


class Page(Struct, frozen=True):
    """A text with its tokens, and the places of what becomes operations."""

    source: Source
    tokens: Tokens
    spans: Sequence[OperationSpan]

    def heads(self) -> Iterator[list[tuple[int, int]]]:
        """Line and column of every token of each place, up to where the next one begins."""
        starts, texts = self.tokens.starts, self.tokens.texts
        closings = [span.closing for span in self.spans if span.closing is not None]
        anchors = sorted([*(span.start for span in self.spans), *closings])
        anchors.append(len(self.source.text))
        for span in self.spans:
            first = bisect_left(starts, span.start)
            last = bisect_left(starts, anchors[bisect_left(anchors, span.start) + 1])
            while last > first and texts[last - 1] == ";":
                last -= 1
            yield [self.source.position(start) for start in starts[first:last]]


def token_attributes(written: Page, canonical: Page) -> list[list[str]]:
    """For each place what says where its tokens stood; nothing where that follows."""
    pairs = zip(written.heads(), canonical.heads(), strict=True)
    return [_attribute(original, expected) for original, expected in pairs]


def _attribute(original: list[tuple[int, int]], expected: list[tuple[int, int]]) -> list[str]:
    if len(original) != len(expected) or _relative(original) == _relative(expected):
        return []
    line = original[0][0]
    numbers = (f"{at - line}, {column}" for at, column in original[1:])
    return [f"{TOKENS} = array<i32: {', '.join(numbers)}>"]


def _relative(marks: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Places that tell whether two statements look the same; the first line may begin anywhere."""
    line, column = marks[0]
    return [(at - line, where - column if at == line else where) for at, where in marks]

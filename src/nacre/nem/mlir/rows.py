"""Lines of a document on their way from a module to text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from nacre.nem.mlir.trivia import Trivia, line_with_comments
from nacre.nem.syntax.layout import INDENT


class Mark(Struct, frozen=True):
    """A place in a file, as a location of MLIR has it; lines and columns count from 1."""

    file: str
    line: int
    column: int


class Row(Struct, frozen=True):
    """A line: its text, what surrounds it, and where it starts and ends in what was written."""

    indent: int
    text: str
    trivia: Trivia
    marks: tuple[Mark, ...] = ()
    is_closing: bool = False  # ends a block; it is no statement
    tokens: tuple[tuple[int, int], ...] = ()  # lines further down, and column, of all but the first


def rows_text(rows: Iterable[Row], end: Sequence[str]) -> str:
    """The text of a document: what the formatter makes canonical."""
    lines: list[str] = []
    for row in rows:
        lines += line_with_comments(row.text, row.trivia, " " * (row.indent * INDENT))
    return "\n".join([*lines, *end, ""])

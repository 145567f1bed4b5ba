"""Lines of a document on their way from a module to text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

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
    place: tuple[int, int] = (0, 0)  # of its operation in the module


def rows_text(rows: Iterable[Row], end: Sequence[str]) -> str:
    """The text of a document: what the formatter makes canonical."""
    return "\n".join([*(line for row in rows for line in _lines(row)), *end, ""])


def row_starts(rows: Iterable[Row]) -> list[int]:
    """Where each row begins in the text, what stands above it included."""
    sizes = (sum(len(line) + 1 for line in _lines(row)) for row in rows)
    return list(accumulate(sizes, initial=0))[:-1]


def _lines(row: Row) -> list[str]:
    return line_with_comments(row.text, row.trivia, " " * (row.indent * INDENT))

"""Findings where the locations of a module say: the text that was written, as far as is known.

Locations have lines and columns, not the text. Statements put back at their places make a text in
which every one of them stands where it stood: findings about it are findings about the original.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nacre.base.source import MAX_SOURCE_BYTES, Source
from nacre.nem.mlir.importing import ImportedText
from nacre.nem.mlir.module_places import Place
from nacre.nem.mlir.operation_spans import OperationSpan, operation_spans
from nacre.nem.mlir.rows import Mark, Row
from nacre.nem.syntax.ast import same_meaning
from nacre.nem.syntax.lexer import LOOKAHEAD, tokenize
from nacre.nem.syntax.parser import parse


def origin_source(imported: ImportedText) -> Source | None:
    """The text that a module comes from, under its name there; None where it is not known."""
    marks = [mark for row in imported.rows for mark in row.marks[:1]]
    files = {mark.file for mark in marks}
    if len(marks) < len(imported.rows) or len(files) != 1:
        return None
    canonical = parse(Source("", imported.text))
    spans = operation_spans(canonical.document, tokenize(canonical.source).starts)
    text = _original_text(imported.rows, spans, canonical.source)
    source = Source(files.pop(), text or "")
    # Locations that say something else than where statements stood would make another program.
    is_same = text is not None and same_meaning(parse(source).document, canonical.document)
    return source if is_same else None


def operation_places(imported: ImportedText, canonical: Source) -> list[tuple[int, Place]]:
    """Where statements begin in the canonical text, and where their operations stand."""
    spans = operation_spans(parse(canonical).document, tokenize(canonical).starts)
    heads = [row for row in imported.rows if not row.is_closing]
    places: list[tuple[int, Place]] = []
    for row, span in zip(heads, spans, strict=True):
        places.append((span.start, row.place))
        if span.closing is not None:
            places.append((span.closing, row.place))
    return sorted(places)


def _original_text(
    rows: Sequence[Row], spans: Sequence[OperationSpan], canonical: Source
) -> str | None:
    """The rows at their places; None where those are beyond any text."""
    heads = iter(spans)
    texts = [row.text if row.is_closing else _row_text(row, next(heads), canonical) for row in rows]
    page = _Page()
    # Blocks of a device may be written in any order; the canonical form has one.
    for row, text in sorted(
        zip(rows, texts, strict=True), key=lambda pair: _order(pair[0].marks[0])
    ):
        if not all(page.put(mark, part) for mark, part in _parts(row, text)):
            return None
    return page.text


def _order(mark: Mark) -> tuple[int, int]:
    return mark.line, mark.column


def _parts(row: Row, text: str) -> Iterator[tuple[Mark, str]]:
    """A row whole, or its tokens where it says where those stood."""
    first = row.marks[0]
    texts = tokenize(Source("", row.text)).texts[:-LOOKAHEAD] if row.tokens else []
    if len(texts) != len(row.tokens) + 1:
        yield first, text
        return
    marks = [first, *(Mark(first.file, first.line + at, column) for at, column in row.tokens)]
    # `src` may stand before `dst`; the canonical form has one order.
    yield from sorted(zip(marks, texts, strict=True), key=lambda part: _order(part[0]))


_MARKS = frozenset("()[]{},:=@<>+-*/")  # what ends a token before it and begins none within


class _Page:
    """A text that is written from its start to its end, at given places."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._line, self._column, self._size = 1, 1, 0

    @property
    def text(self) -> str:
        """What was written so far."""
        return "".join([*self._parts, "\n"])

    def _needs_blank(self, text: str) -> int:
        """1 where a text would grow together with what stands before it."""
        return int(self._column > 1 and self._parts[-1][-1] not in _MARKS and text[0] not in _MARKS)

    def put(self, mark: Mark, text: str) -> bool:
        """Write a text there, or a blank behind what is there already; False where it is past."""
        lines, blanks = mark.line - self._line, max(mark.column - 1, 0)
        if lines == 0:
            blanks = max(mark.column - self._column, self._needs_blank(text))
        self._size += lines + blanks + len(text)
        if lines < 0 or self._size > MAX_SOURCE_BYTES or not text:
            return False
        self._parts += ["\n" * lines, " " * blanks, text]
        start = self._column if lines == 0 else 1
        self._line = mark.line + text.count("\n")
        last = len(text) - (text.rfind("\n") + 1)
        self._column = last + 1 if "\n" in text else start + blanks + last
        return True


def _row_text(row: Row, span: OperationSpan, canonical: Source) -> str:
    """The text of a row: over several lines where it was written as the formatter writes it."""
    text = canonical.text[span.start : span.end]
    if "\n" not in text or len(row.marks) < 2:
        return row.text
    first, last = row.marks[:2]
    line, _ = canonical.position(span.start)
    end_line, end_column = canonical.position(span.end)
    is_same = last.line - first.line == end_line - line and last.column == end_column
    return text if is_same else row.text

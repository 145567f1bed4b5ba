"""Tables of strangers: CSV text as rows of cells, each with its place; strict about their form."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import backquote
from nacre.base.source import Source, Span, Unreadable, read_source, whole_file
from nacre.calibrate.rules import CAL01

_MOST_BYTES = 16 << 20
_MOST_ROWS = 100_000
_MOST_CELL = 4096  # characters; a path or a shape has far fewer


@dataclass(frozen=True)
class TableRow:
    """The cells of a row by column, without those that are empty."""

    cells: Mapping[str, str]
    span: Span

    def cell_span(self, column: str) -> Span:
        """Where a cell stands; the row where it is empty, or stands there otherwise."""
        text = self.span.source.text[self.span.start : self.span.end]
        cell = self.cells.get(column, "")
        at = text.find(cell) if cell and text.count(cell) == 1 else -1
        if at < 0:
            return self.span
        return self.span.source.span(self.span.start + at, self.span.start + at + len(cell))


@dataclass(frozen=True)
class Table:
    """A table whose rows all have the columns of its header."""

    source: Source
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]

    @property
    def header_span(self) -> Span:
        """Where the header stands."""
        return _line_span(self.source, 1, 1)


def read_table(path: Path) -> Table:
    """A table from a file; InputError says everything that is wrong with its form."""
    source = read_source(path, limit=_MOST_BYTES)
    if isinstance(source, Unreadable):
        span = source.span or whole_file(str(path))
        raise InputError([CAL01.at(span, f"{backquote(path.name, 60)}: {source.reason}")])
    return parse_table(source)


def parse_table(source: Source) -> Table:
    """A table from its text."""
    lines = list(_records(source))
    if not lines:
        help_ = "the first line names the columns"
        raise InputError([CAL01.at(source.span(0, 0), "the table is empty", help=help_)])
    (header, span), body = lines[0], [(cells, s) for cells, s in lines[1:] if any(cells)]
    columns = tuple(name.strip() for name in header)
    findings = [
        CAL01.at(span, f"column {backquote(name)} is named {count} times")
        for name, count in Counter(columns).items()
        if count > 1 and name
    ]
    if "" in columns:
        findings.append(CAL01.at(span, f"column {columns.index('') + 1} has no name"))
    for cells, place in body:
        if len(cells) != len(columns):
            message = f"the row has {len(cells)} cells, the header has {len(columns)}"
            findings.append(CAL01.at(place, message))
    if not body:
        findings.append(CAL01.at(span, "the table has no row"))
    if findings:
        raise InputError(findings)
    return Table(source, columns, tuple(_row(columns, *line) for line in body))


def _row(columns: tuple[str, ...], cells: list[str], span: Span) -> TableRow:
    stripped = (cell.strip() for cell in cells)
    return TableRow({c: cell for c, cell in zip(columns, stripped, strict=True) if cell}, span)


def _records(source: Source) -> Iterator[tuple[list[str], Span]]:
    """The records of a text, each with the lines that it takes."""
    reader = csv.reader(io.StringIO(source.lined_text, newline=""), strict=True)
    first = 1
    try:
        for count, cells in enumerate(reader):
            span = _line_span(source, first, reader.line_num)
            if any(len(cell) > _MOST_CELL for cell in cells):
                message = f"a cell has {max(map(len, cells)):,} characters, at most {_MOST_CELL:,}"
                raise InputError([CAL01.at(_line_span(source, first, first), message)])
            if count > _MOST_ROWS:
                message = f"the table has more than {_MOST_ROWS:,} rows"
                raise InputError([CAL01.at(span, message)])
            yield cells, span
            first = reader.line_num + 1
    except csv.Error as error:
        message = f"this is no CSV: {error}"
        raise InputError([CAL01.at(_line_span(source, first, first), message)]) from None


def _line_span(source: Source, first: int, last: int) -> Span:
    starts = source.line_starts
    start = starts[min(first, len(starts)) - 1]
    end = starts[last] - 1 if last < len(starts) else source.size
    return source.span(start, max(start, end))

"""A module of MLIR as a document of NEM, in its canonical text."""

from __future__ import annotations

import re

from msgspec import Struct

from nacre.base.diagnostics import InputError, has_errors
from nacre.base.source import Source
from nacre.nem.mlir.module_places import move_to_operations
from nacre.nem.mlir.reading import deep_recursion, read_module, require_xdsl
from nacre.nem.mlir.rows import Row, row_starts, rows_text
from nacre.nem.spec.rules.mlir import MLR03
from nacre.nem.syntax.ast import same_meaning
from nacre.nem.syntax.formatter import format_parsed
from nacre.nem.syntax.parser import parse

_STEM = re.compile(r"token(_+)")


class ImportedText(Struct, frozen=True):
    """The canonical text of a module, and its lines with the places that the module names."""

    text: str
    rows: tuple[Row, ...]
    module: Source


def import_source(source: Source) -> ImportedText:
    """The document of a module; InputError where it is none (MLR02 to MLR04, MLR06)."""
    require_xdsl(source.name)
    from nacre.nem.mlir.dialect import nem_context
    from nacre.nem.mlir.read_document import read_document

    module = read_module(source, nem_context())
    with deep_recursion():
        read = read_document(module, _stem(source.text))
        if read.found:
            raise InputError(read.found)
        parsed = parse(Source(source.name, rows_text(read.rows, read.end)))
        if has_errors(parsed.diagnostics):
            starts, places = row_starts(read.rows), [row.place for row in read.rows]
            raise InputError(
                move_to_operations(
                    parsed.diagnostics,
                    parsed.source,
                    source,
                    list(zip(starts, places, strict=True)),
                )
            )
        if not same_meaning(parsed.document, read.document):
            message = "the text of this module would not mean what its operations say"
            help_ = "a name or a string in it is read as something else: give it another one"
            raise InputError([MLR03.at(module.span(module.module), message, help=help_)])
        return ImportedText(format_parsed(parsed), tuple(read.rows), source)


def _stem(text: str) -> str:
    """How names begin that nobody uses: the text does not have it."""
    longest = max(map(len, _STEM.findall(text)), default=0)
    return f"token{'_' * (longest + 1)}"

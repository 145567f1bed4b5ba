"""What is wrong with an image, and where it stands in its text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nacre.base.diagnostics import Diagnostic
from nacre.base.rules import Rule
from nacre.base.source import Source, Span
from nacre.tcb.image import Image
from nacre.tcb.text.disassembly import Place, listing


@dataclass(frozen=True, slots=True)
class Problem:
    """A broken promise: the statement of the image's text that breaks it."""

    rule: Rule
    place: Place
    message: str
    help: str | None = None


Problems = Iterator[Problem]


def findings_of(
    image: Image, problems: list[Problem], name: str, spans: Mapping[Place, Span] | None
) -> list[Diagnostic]:
    """Problems as findings in the text that an image was read from, else in its own."""
    if not problems:
        return []
    known = _canonical_spans(image, name) if spans is None else spans
    return [
        problem.rule.at(known[problem.place], problem.message, help=problem.help)
        for problem in problems
    ]


def _canonical_spans(image: Image, name: str) -> dict[Place, Span]:
    """Where statements stand in the text that an image is written as."""
    text, lines = listing(image)
    source = Source(name, text)
    return {place: _head_span(source, line) for place, line in lines.items()}


def _head_span(source: Source, line: int) -> Span:
    """A line without its indentation and its comment."""
    text = source.line_text(line)
    start = source.line_starts[line - 1]
    indent = len(text) - len(text.lstrip())
    length = len(text.partition("  #")[0].rstrip())
    return source.span(start + indent, start + max(length, indent))

"""What is wrong with an image, and where it stands in its text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nacre.base.diagnostics import Diagnostic
from nacre.base.rules import Rule
from nacre.base.source import Source
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


def findings_of(image: Image, problems: list[Problem], name: str) -> list[Diagnostic]:
    """Problems as findings in the image's own text."""
    if not problems:
        return []
    text, lines = listing(image)
    source = Source(name, text)
    return [_finding(source, lines[problem.place], problem) for problem in problems]


def _finding(source: Source, line: int, problem: Problem) -> Diagnostic:
    text = source.line_text(line)
    start = source.line_starts[line - 1]
    indent = len(text) - len(text.lstrip())
    length = len(text.partition("  #")[0].rstrip())
    span = source.span(start + indent, start + max(length, indent))
    return problem.rule.at(span, problem.message, help=problem.help)

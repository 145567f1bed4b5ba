"""What the tools say about an input: values that are collected, sorted and rendered elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from nacre.base.source import Location, Span

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Related:
    """A second place that a diagnostic speaks of, and what it has to do with it."""

    span: Span
    message: str

    @property
    def location(self) -> Location:
        """The place in lines and columns."""
        return self.span.location


@dataclass(frozen=True, slots=True)
class Edit:
    """A stretch of text and what takes its place; an empty stretch is an insertion."""

    span: Span
    replacement: str


@dataclass(frozen=True, slots=True)
class Fix:
    """The only remedy of a finding, as edits of one file that belong together."""

    description: str  # what it does, as a command: write `relu`
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: what is wrong, where, what it conflicts with, and how to mend it."""

    code: str
    severity: Severity
    message: str  # one sentence that makes sense alone: what was found, what was expected
    span: Span
    related: tuple[Related, ...] = ()
    help: str | None = None  # the only part that says how to mend it
    data: Mapping[str, Any] | None = field(default=None, compare=False)  # for tools: JSON values
    fix: Fix | None = field(default=None, compare=False)  # where there is one sure remedy

    @property
    def location(self) -> Location:
        """The primary place in lines and columns."""
        return self.span.location

    def __str__(self) -> str:
        return f"{self.location}: {self.severity}[{self.code}]: {self.message}"


class InputError(Exception):
    """The input is wrong; `diagnostics` says where and why."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(str(d) for d in self.diagnostics))


class InternalError(Exception):
    """An invariant of ours broke: a bug in nacre, never the user's mistake."""


def in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Sorted by file in order of first mention, then by place; exact repetitions dropped."""
    distinct = list(dict.fromkeys(diagnostics))
    files: dict[str, int] = {}
    for diagnostic in distinct:
        files.setdefault(diagnostic.span.source.name, len(files))
    return sorted(
        distinct, key=lambda d: (files[d.span.source.name], d.span.start, d.span.end, d.code)
    )


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    """Whether any of them is an error."""
    return any(d.severity == "error" for d in diagnostics)


def warnings_as_errors(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """What `--strict` makes of them."""
    return [replace(d, severity="error") if d.severity == "warning" else d for d in diagnostics]


# Who is given findings that stop nothing.
Warn = Callable[[Diagnostic], None]

"""Diagnostics as text for a terminal, as JSON and as a summary line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from nacre.base.diagnostics import Diagnostic, Fix
from nacre.base.excerpt import excerpt, safe
from nacre.base.grouping import group_by_cause
from nacre.base.source import Location, Span

_COLOURS = {"error": "1;31", "warning": "1;33", "info": "1;36", "bold": "1", "rule": "1;34"}


def render_text(
    diagnostics: Iterable[Diagnostic], *, colour: bool = False, explain: bool = False
) -> str:
    """Every diagnostic with its source excerpt, separated by blank lines.

    With `explain`, the reasons that a diagnostic carries as data follow as notes.
    """
    return "\n".join(_render(d, colour, explain) for d in diagnostics)


def render_by_cause(
    diagnostics: Iterable[Diagnostic],
    *,
    colour: bool = False,
    explain: bool = False,
    unplaced: str | None = None,
) -> str:
    """The same with findings of one cause as one, and a note of where the others are.

    Findings in the source that is `unplaced` are shown without a place.
    """
    parts = []
    for group in group_by_cause(diagnostics):
        text = _render(group.first, colour, explain, unplaced)
        parts.append(text if group.note is None else f"{text}   = note: {group.note}\n")
    return "\n".join(parts)


def render_json(
    diagnostics: Iterable[Diagnostic],
    *,
    indent: int | None = 2,
    others: Mapping[str, object] = MappingProxyType({}),
) -> str:
    """The stable machine form: `{"diagnostics": [...]}`, lines and columns from 1.

    `others` stand beside the findings, under their names.
    """
    return json.dumps({"diagnostics": [to_json(d) for d in diagnostics], **others}, indent=indent)


def to_json(diagnostic: Diagnostic) -> dict[str, Any]:
    """One diagnostic as JSON values."""
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        **_location_json(diagnostic.location),
        "related": [
            {"message": r.message, **_location_json(r.location)} for r in diagnostic.related
        ],
        "help": diagnostic.help,
        **({"data": dict(diagnostic.data)} if diagnostic.data is not None else {}),
        **({"fix": _fix_json(diagnostic.fix)} if diagnostic.fix is not None else {}),
    }


def _fix_json(fix: Fix) -> dict[str, Any]:
    edits = [{**_location_json(e.span.location), "replacement": e.replacement} for e in fix.edits]
    return {"description": fix.description, "edits": edits}


def summary(diagnostics: Sequence[Diagnostic]) -> str:
    """`2 errors, 1 warning`, or `no problems`."""
    counts = Counter(d.severity for d in diagnostics)
    parts = [
        f"{counts[severity]} {severity}{'s' if counts[severity] > 1 else ''}"
        for severity in ("error", "warning")
        if counts[severity]
    ]
    if counts["info"]:
        parts.append(f"{counts['info']} info")
    return ", ".join(parts) or "no problems"


def _location_json(location: Location) -> dict[str, Any]:
    return {
        "file": location.file,
        "line": location.line,
        "column": location.column,
        "end_line": location.end_line,
        "end_column": location.end_column,
    }


def _render(
    diagnostic: Diagnostic, colour: bool, explain: bool, unplaced: str | None = None
) -> str:
    paint = _paint if colour else _plain
    head = paint(f"{diagnostic.severity}[{diagnostic.code}]", diagnostic.severity)
    lines = [f"{head}{paint(': ' + safe(diagnostic.message), 'bold')}"]
    spans = [(diagnostic.span, "", "^"), *((r.span, r.message, "-") for r in diagnostic.related)]
    gutter = max(len(str(span.location.line)) for span, _, _ in spans)
    for index, (span, label, mark) in enumerate(spans):
        if span.source.name == unplaced:
            continue
        arrow = "-->" if index == 0 else ":::"
        where = str(span.location) if span.source.is_shown else span.source.name
        lines.append(f"{' ' * gutter}{paint(arrow, 'rule')} {safe(where)}")
        if not span.source.is_shown:
            lines += [f"{' ' * gutter} {paint('=', 'rule')} {safe(label)}"] if label else []
            continue
        lines += _excerpt_lines(span, safe(label), mark, gutter, diagnostic.severity, colour)
    if explain and diagnostic.data is not None:
        for reason in diagnostic.data.get("explanation", ()):
            lines.append(f"{' ' * gutter} {paint('=', 'rule')} note: {safe(str(reason))}")
    if diagnostic.help:
        lines.append(f"{' ' * gutter} {paint('=', 'rule')} help: {safe(diagnostic.help)}")
    return "\n".join(lines) + "\n"


def _excerpt_lines(
    span: Span, label: str, mark: str, gutter: int, severity: str, colour: bool
) -> list[str]:
    paint = _paint if colour else _plain
    location = span.location
    line = span.source.line_text(location.line)
    start = location.column - 1
    end = location.end_column - 1 if location.end_line == location.line else len(line)
    text, cell, cells = excerpt(line, start, end)
    bar = paint("|", "rule")
    under = paint(mark * cells, severity if mark == "^" else "rule")
    return [
        f"{' ' * gutter} {bar}",
        f"{paint(str(location.line).rjust(gutter), 'rule')} {bar} {text}",
        f"{' ' * gutter} {bar} {' ' * cell}{under}{' ' + label if label else ''}",
    ]


def _paint(text: str, style: str) -> str:
    return f"\x1b[{_COLOURS[style]}m{text}\x1b[0m"


def _plain(text: str, style: str) -> str:
    return text

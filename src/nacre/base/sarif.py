"""Diagnostics as SARIF 2.1.0, the format that code-review sites read."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote_from_bytes

from nacre._version import __version__
from nacre.base.diagnostics import Diagnostic, Fix
from nacre.base.rules import RULES, Rule
from nacre.base.source import Span

_LEVELS = {"error": "error", "warning": "warning", "info": "note"}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render_sarif(diagnostics: Sequence[Diagnostic], *, indent: int | None = 2) -> str:
    """One run with one result a diagnostic; the rules that occur are described in the driver."""
    codes = sorted({d.code for d in diagnostics})
    driver = {
        "name": "nacre",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_rule(code, RULES.get(code)) for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(d, codes.index(d.code)) for d in diagnostics],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=indent)


def _rule(code: str, rule: Rule | None) -> dict[str, Any]:
    if rule is None:
        return {"id": code}
    return {
        "id": code,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.page},
        "help": {"text": f"nacre rule {code}"},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"clause": rule.spec, **({"fix": rule.fix} if rule.fix else {})},
    }


def _result(diagnostic: Diagnostic, rule_index: int) -> dict[str, Any]:
    text = diagnostic.message
    if diagnostic.help:
        text += f"\nhelp: {diagnostic.help}"
    result: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "ruleIndex": rule_index,
        "level": _LEVELS[diagnostic.severity],
        "message": {"text": text},
        "locations": [{"physicalLocation": _physical_location(diagnostic.span)}],
    }
    if diagnostic.related:
        result["relatedLocations"] = [
            {
                "id": i,
                "message": {"text": r.message},
                "physicalLocation": _physical_location(r.span),
            }
            for i, r in enumerate(diagnostic.related)
        ]
    if diagnostic.fix is not None:
        result["fixes"] = [_fix(diagnostic.fix)]
    return result


def _fix(fix: Fix) -> dict[str, Any]:
    """All edits of a fix are of one file, so that it has one change."""
    replacements = [
        {
            "deletedRegion": _physical_location(edit.span)["region"],
            "insertedContent": {"text": edit.replacement},
        }
        for edit in fix.edits
    ]
    location = {"uri": _uri(fix.edits[0].span)}
    change = {"artifactLocation": location, "replacements": replacements}
    return {"description": {"text": fix.description}, "artifactChanges": [change]}


def _physical_location(span: Span) -> dict[str, Any]:
    location = span.location
    return {
        "artifactLocation": {"uri": _uri(span)},
        "region": {
            "startLine": location.line,
            "startColumn": location.column,
            "endLine": location.end_line,
            "endColumn": location.end_column,
        },
    }


def _uri(span: Span) -> str:
    # A relative path stays relative, so that a review site finds it in the repository.
    path = span.source.path
    if path is None:
        return _quote(span.source.name)
    # A name that is not UTF-8 keeps its bytes, percent-encoded.
    return ("file://" if path.is_absolute() else "") + _quote(path.as_posix())


def _quote(name: str) -> str:
    return quote_from_bytes(os.fsencode(name))

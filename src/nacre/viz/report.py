"""The report page: one file that shows where the time of a run goes, without any network."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from nacre.base.files import write_whole
from nacre.nem.run.timing.result import TimedResult
from nacre.viz.report_data import program_name, report_data

# In this order they are one program.
SCRIPTS = (
    "data.js",
    "elements.js",
    "tracks.js",
    "timeline.js",
    "details.js",
    "source.js",
    "tables.js",
    "charts.js",
    "layers.js",
    "report.js",
)
STYLES = ("report.css",)
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


def render_report(
    result: TimedResult, *, title: str, layers: Mapping[str, Any] | None = None
) -> str:
    """The page as text, with a view of a model's layers where there are some.

    Whatever comes from the program stands in it escaped.
    """
    # File names may hold what is no text; no page can be written with it.
    title = title.encode("utf-8", "replace").decode("utf-8")
    script = "(() => {\n'use strict';\n" + _assets(SCRIPTS) + "})();\n"
    style = _assets(STYLES)
    parts = {
        "policy": _content_security_policy(script, style),
        "title": html.escape(title),
        "sentence": html.escape(_as_sentence(result.sentence())),
        "style": style,
        "script": script,
        "data": embedded_json(report_data(result) | {"title": title, "layers": layers}),
    }
    # In one pass: what is put in is never looked at again.
    return _PLACEHOLDER.sub(lambda match: parts[match[1]], _asset("report.html"))


def write_report(
    result: TimedResult,
    path: Path | str,
    *,
    title: str | None = None,
    layers: Mapping[str, Any] | None = None,
) -> None:
    """Write the page to a file, whole or not at all; its title is the program's name."""
    name = title or program_name(result.timeline.steps.plan.program)
    write_whole(Path(path), [render_report(result, title=name, layers=layers)])


def _as_sentence(text: str) -> str:
    """A capital, digits in groups and a full stop; a name at the beginning stays as it is."""
    grouped = re.sub(r"\b\d{4,}\b", lambda number: f"{int(number[0]):,}", text)
    first = grouped.partition(" ")[0]
    return (grouped[:1].upper() + grouped[1:] if first.islower() else grouped) + "."


def embedded_json(value: object) -> str:
    """JSON that can stand in a script element: nothing in it can end or open one."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _content_security_policy(script: str, style: str) -> str:
    """No network at all, and no script or style but the page's own."""
    return (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _assets(names: tuple[str, ...]) -> str:
    return "\n".join(_asset(name) for name in names)


def _asset(name: str) -> str:
    return (files("nacre.viz") / "assets" / name).read_text(encoding="utf-8")

"""Pages: one file each, with its styles, scripts and data inside, that needs no network."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True)
class PageKind:
    """What pages of one kind are made of: assets, by their names."""

    template: str
    scripts: tuple[str, ...]  # in this order they are one program
    styles: tuple[str, ...]


def render_page(kind: PageKind, data: Mapping[str, Any], *, title: str, sentence: str) -> str:
    """A page as text. Whatever comes from a program stands in it escaped."""
    # File names may hold what is no text; no page can be written with it.
    title = title.encode("utf-8", "replace").decode("utf-8")
    script = "(() => {\n'use strict';\n" + _assets(kind.scripts) + "})();\n"
    style = _assets(kind.styles)
    parts = {
        "policy": _content_security_policy(script, style),
        "title": html.escape(title),
        "sentence": html.escape(as_sentence(sentence)),
        "style": style,
        "script": script,
        "data": embedded_json({**data, "title": title}),
    }
    # In one pass: what is put in is never looked at again.
    return _PLACEHOLDER.sub(lambda match: parts[match[1]], _asset(kind.template))


def as_sentence(text: str) -> str:
    """A capital, digits in groups and a full stop; a name at the beginning stays as it is."""
    grouped = re.sub(r"\b[0-9]{4,}\b", lambda number: f"{int(number[0]):,}", text)
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

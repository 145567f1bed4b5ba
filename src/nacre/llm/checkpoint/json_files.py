"""JSON files of checkpoints: objects, bounded, from strangers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nacre.base.source import Unreadable, read_source
from nacre.llm.model.problems import refusal
from nacre.llm.rules.model import LLM02

JsonObject = Mapping[str, Any]
_MOST_BYTES = 1 << 20


def read_json_object(path: Path, limit: int = _MOST_BYTES) -> JsonObject:
    """The object in a file; InputError where there is none."""
    name = str(path)
    source = read_source(path, limit=limit)
    if isinstance(source, Unreadable):
        raise refusal(LLM02, name, f"the file {source.reason}")
    return parse_json_object(source.text, name)


def parse_json_object(text: str, name: str) -> JsonObject:
    """The object that a text is."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise refusal(LLM02, name, f"this is no JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise refusal(LLM02, name, "this is no mapping of names to values")
    return parsed

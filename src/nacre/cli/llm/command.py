"""`nacre llm` with all of its verbs: a file of this folder registers its own."""

from __future__ import annotations

from nacre.base.lazy import load_all
from nacre.cli.llm.group import llm

__all__ = ["llm"]

load_all("nacre.cli.llm")

"""Every module that declares rules of language models, so that listing them finds all."""

from __future__ import annotations

from nacre.base.lazy import load_all


def load() -> None:
    """Import them all; importing registers their rules."""
    load_all("nacre.llm.rules")

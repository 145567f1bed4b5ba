"""Every module that declares rules, so that listing them finds all."""

from __future__ import annotations

import importlib

from nacre.base.lazy import load_all


def load() -> None:
    """Import them all; importing registers their rules."""
    load_all("nacre.nem.spec.rules")
    importlib.import_module("nacre.nem.checks.rule_sets")

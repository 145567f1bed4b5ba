"""Every module that declares rules, so that listing them finds all."""

from __future__ import annotations

import importlib

from nacre.base.lazy import load_all

# The rules about programs and devices come with the modules that gather them.
_GATHERING = (
    "nacre.nem.checks.rules.devices",
    "nacre.nem.checks.rules.families",
    "nacre.nem.checks.program_rules",
)


def load() -> None:
    """Import them all; importing registers their rules."""
    load_all("nacre.nem.spec.rules")
    for module in _GATHERING:
        importlib.import_module(module)

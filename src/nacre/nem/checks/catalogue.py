"""Every module that declares rules, so that listing them finds all."""

from __future__ import annotations

import importlib

# The rules about programs and devices come with the modules that gather them.
MODULES = (
    "nacre.nem.spec.rules.lexical",
    "nacre.nem.spec.rules.document",
    "nacre.nem.spec.rules.declarations",
    "nacre.nem.spec.rules.tasks",
    "nacre.nem.spec.rules.constants",
    "nacre.nem.spec.rules.includes",
    "nacre.nem.spec.rules.devices",
    "nacre.nem.spec.rules.names",
    "nacre.nem.spec.rules.running",
    "nacre.nem.checks.rules.devices",
    "nacre.nem.checks.rules.families",
    "nacre.nem.checks.program_rules",
)


def load() -> None:
    """Import them all; importing registers their rules."""
    for module in MODULES:
        importlib.import_module(module)

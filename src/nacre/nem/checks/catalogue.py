"""Every module that declares rules, so that listing them finds all."""

from __future__ import annotations

import importlib

MODULES = (
    "nacre.nem.spec.rules.lexical",
    "nacre.nem.spec.rules.document",
    "nacre.nem.spec.rules.constants",
    "nacre.nem.spec.rules.includes",
    "nacre.nem.spec.rules.devices",
    "nacre.nem.spec.rules.names",
    "nacre.nem.checks.rules.devices",
    "nacre.nem.checks.rules.families",
    "nacre.nem.checks.rules.buffers",
    "nacre.nem.checks.rules.hazards",
)


def load() -> None:
    """Import them all; importing registers their rules."""
    for module in MODULES:
        importlib.import_module(module)

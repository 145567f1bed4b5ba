"""Every module that declares rules of NAC, so that listing them finds all."""

from __future__ import annotations

import importlib
import pkgutil

from nacre.nac import rules

MODULES = tuple(
    sorted(f"{rules.__name__}.{found.name}" for found in pkgutil.iter_modules(rules.__path__))
)


def load() -> None:
    """Import them all; importing registers their rules."""
    for module in MODULES:
        importlib.import_module(module)

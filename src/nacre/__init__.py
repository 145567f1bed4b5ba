"""nacre: model, plan, proof, bits and time for neural processors with software-managed memory."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from nacre._version import __version__
from nacre.base.diagnostics import Diagnostic, InputError

if TYPE_CHECKING:
    from nacre import core, nem

__all__ = ["Diagnostic", "InputError", "__version__", "core", "nem"]

# Loaded on first use: a command that only reads NEM must not pay for the rest.
_ROOMS = frozenset({"core", "nem"})


def __getattr__(name: str) -> object:
    if name in _ROOMS:
        return importlib.import_module(f"nacre.{name}")
    raise AttributeError(f"module 'nacre' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

"""nacre: model, plan, proof, bits and time for neural processors with software-managed memory."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING

from nacre._version import __version__
from nacre.base.diagnostics import Diagnostic, InputError

if TYPE_CHECKING:
    from nacre import core, nac, nem
    from nacre.compile.api import compile
    from nacre.compile.bundle import Bundle
    from nacre.compile.estimate import estimate

__all__ = [
    "Bundle",
    "Diagnostic",
    "InputError",
    "__version__",
    "compile",
    "core",
    "estimate",
    "nac",
    "nem",
]

# Loaded on first use: a command that only reads NEM must not pay for the rest.
_ROOMS = frozenset({"core", "nac", "nem"})
_HOMES = {
    "compile": "nacre.compile.api",
    "Bundle": "nacre.compile.bundle",
    "estimate": "nacre.compile.estimate",
}


class _Front(ModuleType):
    """This package: `nacre.compile` is the function, also when the package of that name is used."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in _HOMES and isinstance(value, ModuleType):
            return
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Front


def __getattr__(name: str) -> object:
    if name in _ROOMS:
        return importlib.import_module(f"nacre.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'nacre' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

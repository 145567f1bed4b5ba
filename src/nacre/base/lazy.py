"""Packages whose names are loaded on first use: reading a file must not pay for running one.

And packages that are loaded whole, where each module registers what it has.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from types import ModuleType


class LazyPackage(ModuleType):
    """A package that knows where its public names live; None for a package inside it."""

    _homes: Mapping[str, str | None]

    def __getattr__(self, name: str) -> object:
        if name not in self._homes:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        home = self._homes[name]
        value = importlib.import_module(f"{self.__name__}.{home or name}")
        return value if home is None else getattr(value, name)

    def __setattr__(self, name: str, value: object) -> None:
        # Importing `nacre.core.verify` would put that module in the place of the function.
        if self._homes.get(name) is None or not isinstance(value, ModuleType):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted(self.__dict__["__all__"])


def load_on_use(package: str, homes: Mapping[str, str | None]) -> None:
    """Let a package load its names where they live, relative to it, when they are first used."""
    module = sys.modules[package]
    module.__dict__["_homes"] = homes
    module.__class__ = LazyPackage


def load_all(*packages: str) -> None:
    """Import every module of some packages: the folder is the list."""
    import pkgutil

    for package in packages:
        folder = importlib.import_module(package).__path__
        for found in pkgutil.iter_modules(folder, f"{package}."):
            importlib.import_module(found.name)

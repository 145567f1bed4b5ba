"""Functions registered by the names of what they handle, in modules that are imported on demand."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Generic, TypeVar

Handler = TypeVar("Handler")


class Handlers(Generic[Handler]):
    """A table that the modules of one package fill as they are imported."""

    def __init__(self, package: str, modules: tuple[str, ...]) -> None:
        self._package, self._modules = package, modules
        self._found: dict[str, Handler] = {}

    def register(self, *names: str) -> Callable[[Handler], Handler]:
        """A decorator that puts a function in the table; a name has one function."""

        def register(handler: Handler) -> Handler:
            for name in names:
                if name in self._found:
                    raise ValueError(f"two handlers for {name}")
                self._found[name] = handler
            return handler

        return register

    def all(self) -> Mapping[str, Handler]:
        """Every function by its name, all modules imported."""
        for module in self._modules:
            importlib.import_module(f"{self._package}.{module}")
        return MappingProxyType(self._found)

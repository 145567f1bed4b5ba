"""Functions registered by the names of what they handle.

The table stands below the modules that fill it as they are imported; a catalogue above them, which
imports them all, hands it out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Generic, TypeVar

Handler = TypeVar("Handler")


class Handlers(Generic[Handler]):
    """A table that modules fill as they are imported."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}

    def register(self, *names: str) -> Callable[[Handler], Handler]:
        """A decorator that puts a function in the table; a name has one function."""

        def register_handler(handler: Handler) -> Handler:
            for name in names:
                if name in self._handlers:
                    raise ValueError(f"two handlers for {name}")
                self._handlers[name] = handler
            return handler

        return register_handler

    @property
    def registered(self) -> Mapping[str, Handler]:
        """Every function by its name, of the modules that are imported."""
        return MappingProxyType(self._handlers)

"""Which function computes which call."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nacre.base.handlers import Handlers
from nacre.core.aten.call import Handler

_TABLE = Handlers[Handler]()


def handles(*operations: str) -> Callable[[Handler], Handler]:
    """Register a function for calls, written `name.overload`."""
    return _TABLE.register(*operations)


def registered_handlers() -> Mapping[str, Handler]:
    """Handlers by their calls, of the modules that are imported; a catalogue imports all."""
    return _TABLE.registered

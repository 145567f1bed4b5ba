"""Which function computes which call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType

from nacre.base.handlers import Handlers
from nacre.core.aten.call import Handler
from nacre.core.aten.derived import derived

# Importing one registers its handlers.
MODULES = ("elementwise", "activations", "shapes", "indexing", "scatter", "linear", "windows",
           "pooling", "resizing", "normalization", "reductions", "creation",
           "sizes")  # fmt: skip
_TABLE: Handlers[Handler] = Handlers("nacre.core.aten.handlers", MODULES)


def handles(*operations: str) -> Callable[[Handler], Handler]:
    """Register a function for calls, written `name.overload`."""
    return _TABLE.register(*operations)


@cache
def handlers() -> Mapping[str, Handler]:
    """Every handler by its call; what the rows of the table of Core IR say alone comes last."""
    return MappingProxyType({**derived(), **_TABLE.all()})

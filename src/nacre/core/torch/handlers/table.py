"""Which function brings which ATen operation in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType

from nacre.base.handlers import Handlers
from nacre.core.torch.use import Handler

# Importing one registers its handlers.
MODULES = ("elementwise", "activations", "shapes", "indexing", "scatter", "linear", "windows",
           "pooling", "resizing", "normalization", "reductions", "ordering",
           "creation")  # fmt: skip
_TABLE: Handlers[Handler] = Handlers("nacre.core.torch.handlers", MODULES)


def handles(*operations: str) -> Callable[[Handler], Handler]:
    """Register a function for overloads of ATen, written `name.overload`."""
    return _TABLE.register(*operations)


@cache
def handlers() -> Mapping[str, Handler]:
    """Every handler by its overload; what the rows of the table say alone comes last."""
    from nacre.core.torch.handlers.derived import derived

    return MappingProxyType({**derived(), **_TABLE.all()})

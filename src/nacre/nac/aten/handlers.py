"""Which function computes which call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType

from nacre.base.handlers import Handlers
from nacre.nac.aten.use import Found, Use

# A value of the module, one for each result, or what a call gives that is no tensor.
Made = "int | Number | Sequence[int]"


class Number:
    """A result that is a number of the program, not a tensor."""

    __slots__ = ("number",)

    def __init__(self, number: Found) -> None:
        self.number = number


Handler = Callable[[Use], "int | Number | Sequence[int]"]

# Importing one registers its handlers.
MODULES = ("elementwise", "activations", "shapes", "indexing", "scatter", "linear", "windows",
           "pooling", "resizing", "normalization", "reductions", "creation",
           "sizes")  # fmt: skip
_TABLE: Handlers[Handler] = Handlers("nacre.nac.aten", MODULES)


def handles(*operations: str) -> Callable[[Handler], Handler]:
    """Register a function for calls, written `name.overload`."""
    return _TABLE.register(*operations)


@cache
def handlers() -> Mapping[str, Handler]:
    """Every handler by its call; what the rows of the table of Core IR say alone comes last."""
    from nacre.nac.aten.derived import derived

    return MappingProxyType({**derived(), **_TABLE.all()})

"""Which function computes which call."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType

from nacre.nac.aten.use import Found, Use

# A value of the module, one for each result, or what a call gives that is no tensor.
Made = "int | Number | Sequence[int]"


class Number:
    """A result that is a number of the program, not a tensor."""

    __slots__ = ("number",)

    def __init__(self, number: Found) -> None:
        self.number = number


Handler = Callable[[Use], "int | Number | Sequence[int]"]

_HANDLERS: dict[str, Handler] = {}
# Importing one registers its handlers.
MODULES = ("elementwise", "activations", "shapes", "indexing", "scatter", "linear", "windows",
           "pooling", "resizing", "normalization", "reductions", "creation",
           "sizes")  # fmt: skip


def handles(*calls: str) -> Callable[[Handler], Handler]:
    """Register a function for calls, written `name.overload`."""

    def register(handler: Handler) -> Handler:
        for call in calls:
            if call in _HANDLERS:
                raise ValueError(f"two handlers for {call}")
            _HANDLERS[call] = handler
        return handler

    return register


@cache
def handlers() -> Mapping[str, Handler]:
    """Every handler by its call; what the rows of the table of Core IR say alone comes last."""
    for module in MODULES:
        importlib.import_module(f"nacre.nac.aten.{module}")
    from nacre.nac.aten.derived import derived

    return MappingProxyType({**derived(), **_HANDLERS})

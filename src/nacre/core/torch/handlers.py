"""Which function brings which ATen operation in."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType

from nacre.core.torch.use import Tensor, Use

# One tensor, one for each output, or a number. A function makes an output that few models use.
Handler = Callable[[Use], "int | Tensor | Sequence[int | Tensor]"]

_HANDLERS: dict[str, Handler] = {}
# Importing one registers its handlers.
MODULES = ("elementwise", "activations", "shapes", "indexing", "scatter", "linear", "windows",
           "pooling", "resizing", "normalization", "reductions", "ordering",
           "creation")  # fmt: skip


def handles(*operations: str) -> Callable[[Handler], Handler]:
    """Register a function for overloads of ATen, written `name.overload`."""

    def register(handler: Handler) -> Handler:
        for operation in operations:
            if operation in _HANDLERS:
                raise ValueError(f"two handlers for {operation}")
            _HANDLERS[operation] = handler
        return handler

    return register


@cache
def handlers() -> Mapping[str, Handler]:
    """Every handler by its overload; what the rows of the table say alone comes last."""
    for module in MODULES:
        importlib.import_module(f"nacre.core.torch.{module}")
    from nacre.core.torch.derived import derived

    return MappingProxyType({**derived(), **_HANDLERS})

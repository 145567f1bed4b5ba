"""Which function brings which ATen operation in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType

from nacre.base.handlers import Handlers
from nacre.core.torch.use import Tensor, Use

# One tensor, one for each output, or a number. A function makes an output that few models use.
Handler = Callable[[Use], "int | Tensor | Sequence[int | Tensor]"]

# Importing one registers its handlers.
MODULES = ("elementwise", "activations", "shapes", "indexing", "scatter", "linear", "windows",
           "pooling", "resizing", "normalization", "reductions", "ordering",
           "creation")  # fmt: skip
_TABLE: Handlers[Handler] = Handlers("nacre.core.torch", MODULES)


def handles(*operations: str) -> Callable[[Handler], Handler]:
    """Register a function for overloads of ATen, written `name.overload`."""
    return _TABLE.register(*operations)


@cache
def handlers() -> Mapping[str, Handler]:
    """Every handler by its overload; what the rows of the table say alone comes last."""
    from nacre.core.torch.derived import derived

    return MappingProxyType({**derived(), **_TABLE.all()})

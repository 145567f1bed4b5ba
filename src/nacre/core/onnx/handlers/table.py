"""Which function brings which operation in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from nacre.base.handlers import Handlers
from nacre.core.onnx.use import OnnxNode, Tensor

# One tensor, or one for each output.
Handler = Callable[[OnnxNode], "Tensor | Sequence[Tensor]"]

# Importing one registers its handlers.
_HERE = ("elementwise", "activations", "shapes", "linear", "windows", "normalization", "reductions",
         "resize", "sampling", "quantized", "quantized_products", "pooling", "losses", "signals",
         "parts", "deform", "refusals", "attention")  # fmt: skip
MODULES = (
    *(f"handlers.{name}" for name in _HERE),
    *(f"recurrent.{name}" for name in ("layers", "quantized")),
    *(f"microsoft.{name}" for name in ("reals", "quantized", "attention", "grouped_attention")),
)
_TABLE: Handlers[Handler] = Handlers("nacre.core.onnx", MODULES)


def handles(*operations: str) -> Callable[[Handler], Handler]:
    """Register a function for operations; those of other domains are written `domain.Name`."""
    return _TABLE.register(*operations)


@cache
def handlers() -> Mapping[str, Handler]:
    """Every handler by its operation."""
    return _TABLE.all()

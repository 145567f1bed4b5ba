"""Which function brings which operation in."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType

from nacre.core.onnx.use import Tensor, Use

# One tensor, or one for each output.
Handler = Callable[[Use], "Tensor | Sequence[Tensor]"]

_HANDLERS: dict[str, Handler] = {}
# Importing one registers its handlers.
MODULES = ("elementwise", "activations", "shapes", "linear", "windows", "normalization",
           "reductions", "resize", "sampling", "quantized", "quantized_products",
           "pooling", "losses", "signals", "parts", "deform", "refusals", "attention",
           "recurrent", "recurrent_quantized", "microsoft",
           "microsoft_quantized", "microsoft_attention", "microsoft_grouped")  # fmt: skip


def handles(*operations: str) -> Callable[[Handler], Handler]:
    """Register a function for operations; those of other domains are written `domain.Name`."""

    def register(handler: Handler) -> Handler:
        for operation in operations:
            if operation in _HANDLERS:
                raise ValueError(f"two handlers for {operation}")
            _HANDLERS[operation] = handler
        return handler

    return register


@cache
def handlers() -> Mapping[str, Handler]:
    """Every handler by its operation."""
    for module in MODULES:
        importlib.import_module(f"nacre.core.onnx.{module}")
    return MappingProxyType(_HANDLERS)

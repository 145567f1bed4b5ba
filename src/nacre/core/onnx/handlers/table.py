"""Which function brings which operation in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from nacre.base.handlers import Handlers
from nacre.core.onnx.onnx_node import OnnxNode, Tensor

# One tensor, or one for each output.
Handler = Callable[[OnnxNode], "Tensor | Sequence[Tensor]"]

_TABLE = Handlers[Handler]()


def handles(*operations: str) -> Callable[[Handler], Handler]:
    """Register a function for operations; those of other domains are written `domain.Name`."""
    return _TABLE.register(*operations)


def registered_handlers() -> Mapping[str, Handler]:
    """Handlers by their operations, of the modules that are imported; a catalogue imports all."""
    return _TABLE.registered

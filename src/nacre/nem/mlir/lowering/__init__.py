"""A worked lowering: how a compiler written against upstream's dialects ends in NEM."""

from __future__ import annotations

from nacre.nem.mlir.reading import require_xdsl

__all__ = ["lower_matmuls"]


def lower_matmuls(text: str, device: str = "npm_lite", name: str = "<text>") -> str:
    """A module of upstream's dialects as one of the dialect `nem`, for a device.

    InputError where the text is no module (MLR02), something in it has no form (MLR05), or xDSL is
    missing (MLR06).
    """
    require_xdsl(name)
    from nacre.nem.mlir.lowering.matmul import lower

    return lower(text, device, name)

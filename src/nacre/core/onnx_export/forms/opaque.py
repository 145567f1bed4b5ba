"""Calls that are known by their names alone."""

from __future__ import annotations

from nacre.core.onnx_export.graph import Value
from nacre.core.onnx_export.writer import OnnxWriter, writes
from nacre.core.unsupported import Unsupported


@writes("Opaque")
def opaque(writer: OnnxWriter) -> Value:
    """None: a node of that name would mean what its reader makes of it."""
    name = writer.attributes["name"]
    raise Unsupported(f"`{name}` is known by its name alone")

"""Every handler of a node: importing the modules registers theirs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from nacre.base.lazy import load_all
from nacre.core.onnx.handlers.table import Handler, registered_handlers


@cache
def handlers() -> Mapping[str, Handler]:
    """Every handler by its operation."""
    load_all("nacre.core.onnx.handlers", "nacre.core.onnx.microsoft", "nacre.core.onnx.recurrent")
    return registered_handlers()

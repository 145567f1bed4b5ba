"""Which function writes which call by simpler ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nacre.base.handlers import Handlers

Decomposition = Callable[..., Any]

# Calls that PyTorch can write by others, but does not count among those to be.
PYTORCHS = ("grid_sampler_2d.default", "ldexp.Tensor", "max_unpool2d.default")
_TABLE = Handlers[Decomposition]()


def decomposes(*operations: str) -> Callable[[Decomposition], Decomposition]:
    """Register a function for overloads of ATen, written `name.overload`."""
    return _TABLE.register(*operations)


def registered_decompositions() -> Mapping[str, Decomposition]:
    """Functions by their overloads, of the modules that are imported; a catalogue imports all."""
    return _TABLE.registered

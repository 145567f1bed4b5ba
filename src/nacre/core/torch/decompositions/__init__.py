"""Calls of ATen written by simpler ones, as functions of PyTorch.

PyTorch's own table stops at about 190 calls that it holds to be the core. Those of them, and others
that models have, which no operation of Core IR computes are written here in PyTorch's words. Types
and broadcasting are so PyTorch's, and a test compares each with the call itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from nacre.base.handlers import Handlers

Decomposition = Callable[..., Any]

# Importing one registers its functions; they need PyTorch.
_MODULES = ("distances", "functions", "normal", "orders", "places", "samples", "searches",
            "windows")  # fmt: skip
# Calls that PyTorch can write by others, but does not count among those to be.
PYTORCHS = ("grid_sampler_2d.default", "ldexp.Tensor", "max_unpool2d.default")
_TABLE: Handlers[Decomposition] = Handlers("nacre.core.torch.decompositions", _MODULES)


def decomposes(*operations: str) -> Callable[[Decomposition], Decomposition]:
    """Register a function for overloads of ATen, written `name.overload`."""
    return _TABLE.register(*operations)


@cache
def decompositions() -> Mapping[str, Decomposition]:
    """Every function by the overload that it computes."""
    return _TABLE.all()

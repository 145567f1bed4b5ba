"""Every handler of a call: importing the modules registers theirs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from nacre.core.aten.call import Handler
from nacre.core.aten.derived import derive_handlers
from nacre.core.aten.handlers import (
    activations,
    creation,
    elementwise,
    indexing,
    linear,
    normalization,
    parts,
    pooling,
    reductions,
    resizing,
    scatter,
    shapes,
    sizes,
    windows,
)
from nacre.core.aten.table import registered_handlers

MODULES = (
    activations,
    creation,
    elementwise,
    indexing,
    linear,
    normalization,
    parts,
    pooling,
    reductions,
    resizing,
    scatter,
    shapes,
    sizes,
    windows,
)


@cache
def handlers() -> Mapping[str, Handler]:
    """Every handler by its call; what the rows of the table of Core IR say alone comes last."""
    return MappingProxyType({**derive_handlers(), **registered_handlers()})

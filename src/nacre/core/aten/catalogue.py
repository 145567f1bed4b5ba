"""Every handler of a call: importing the modules registers theirs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from nacre.base.lazy import load_all
from nacre.core.aten.call import Handler
from nacre.core.aten.derived import derive_handlers
from nacre.core.aten.table import registered_handlers


@cache
def handlers() -> Mapping[str, Handler]:
    """Every handler by its call; what the rows of the table of Core IR say alone comes last."""
    load_all("nacre.core.aten.handlers")
    return MappingProxyType({**derive_handlers(), **registered_handlers()})

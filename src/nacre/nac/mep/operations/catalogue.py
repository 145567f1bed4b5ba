"""Every function that does an instruction: importing the modules registers theirs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from nacre.base.lazy import load_all
from nacre.nac.mep.operations.registry import Operation, choices, registered_operations
from nacre.nac.mep.table import ROWS


@cache
def operations() -> Mapping[tuple[str, str], Operation]:
    """All functions; every instruction has one."""
    load_all("nacre.nac.mep.operations")
    found = registered_operations()
    wanted = {(row.mnemonic, word) for row in ROWS for word in choices(row)}
    assert wanted == found.keys(), sorted(wanted ^ found.keys())
    return found

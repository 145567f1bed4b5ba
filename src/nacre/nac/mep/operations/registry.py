"""Which function does which instruction.

A function takes the run and the operands of its row by name: slots as their values, constants as
theirs, choices as words, jumps as the instruction that they lead to, `outs` as their number. It
returns what goes into the slots that the row writes. A choice that stands first chooses the
function and is not passed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from nacre.nac.mep.table import Row

Operation = Callable[..., Any]
_FOUND: dict[tuple[str, str], Operation] = {}


def performs(mnemonic: str, choice: str = "") -> Callable[[Operation], Operation]:
    """Register a function for an instruction."""

    def register(function: Operation) -> Operation:
        assert (mnemonic, choice) not in _FOUND, f"{mnemonic} {choice} is done twice"
        _FOUND[mnemonic, choice] = function
        return function

    return register


def choices(row: Row) -> tuple[str, ...]:
    """The words that choose the function of a row; one empty word where nothing is chosen."""
    first = row.operands[0] if row.operands else None
    return tuple(first.words.values()) if first is not None and first.words else ("",)


def registered_operations() -> Mapping[tuple[str, str], Operation]:
    """Functions by instruction and choice, of the modules that are imported."""
    return MappingProxyType(_FOUND)

"""What Python programs call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nacre.nem.api.documents import check, format, pack, unpack

if TYPE_CHECKING:
    from nacre.nem.api.interpreter import NemInterpreter

__all__ = ["NemInterpreter", "check", "format", "pack", "unpack"]


def __getattr__(name: str) -> object:
    # On first use: checking needs none of the machine.
    if name == "NemInterpreter":
        from nacre.nem.api.interpreter import NemInterpreter

        return NemInterpreter
    raise AttributeError(f"module 'nacre.nem.api' has no attribute {name!r}")

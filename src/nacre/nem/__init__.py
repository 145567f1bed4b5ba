"""NEM: the language of execution plans, and what can be done with a program in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nacre.nem.api import check, format

__all__ = ["check", "format"]


def __getattr__(name: str) -> object:
    # On first use, so that a room inside (the parser, say) can be had without all the others.
    if name in __all__:
        from nacre.nem import api

        return getattr(api, name)
    raise AttributeError(f"module 'nacre.nem' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

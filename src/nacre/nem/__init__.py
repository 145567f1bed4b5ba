"""NEM: the language of execution plans, and what can be done with a program in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nacre.base.lazy import load_on_use

if TYPE_CHECKING:
    from nacre.nem.api import check, format

__all__ = ["check", "format"]

load_on_use(__name__, {"check": "api", "format": "api"})

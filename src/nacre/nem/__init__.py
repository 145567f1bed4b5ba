"""NEM: the language of execution plans, and what can be done with a program in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nacre.base.lazy import load_on_use

if TYPE_CHECKING:
    from nacre.nem.api import check, format, pack, unpack
    from nacre.nem.api.mlir import check_mlir, from_mlir, to_mlir

__all__ = ["check", "check_mlir", "format", "from_mlir", "pack", "to_mlir", "unpack"]

load_on_use(
    __name__,
    {
        "check": "api",
        "check_mlir": "api.mlir",
        "format": "api",
        "from_mlir": "api.mlir",
        "pack": "api",
        "to_mlir": "api.mlir",
        "unpack": "api",
    },
)

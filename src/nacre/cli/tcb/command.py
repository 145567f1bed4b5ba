"""`nacre tcb` with all of its verbs: a file of this folder registers its own."""

from __future__ import annotations

from nacre.base.lazy import load_all
from nacre.cli.tcb.group import tcb

__all__ = ["tcb"]

load_all("nacre.cli.tcb")

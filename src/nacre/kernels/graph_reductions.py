"""Reductions that graphs have."""

from __future__ import annotations

from nacre.kernels.call import Primitive

GRAPH_REDUCTIONS: tuple[Primitive, ...] = ()

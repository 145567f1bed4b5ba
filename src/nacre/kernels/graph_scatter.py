"""Elements by index, as graphs have them."""

from __future__ import annotations

from nacre.kernels.call import Primitive

GRAPH_SCATTER: tuple[Primitive, ...] = ()

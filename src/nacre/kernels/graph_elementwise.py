"""Functions of one element at a time that graphs have."""

from __future__ import annotations

from nacre.kernels.call import Primitive

GRAPH_ELEMENTWISE: tuple[Primitive, ...] = ()

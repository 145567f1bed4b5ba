"""Between reals and integers, as graphs have it."""

from __future__ import annotations

from nacre.kernels.call import Primitive

GRAPH_QUANTIZED: tuple[Primitive, ...] = ()

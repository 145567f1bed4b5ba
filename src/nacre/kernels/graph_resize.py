"""Other sizes of planes."""

from __future__ import annotations

from nacre.kernels.call import Primitive

GRAPH_RESIZE: tuple[Primitive, ...] = ()

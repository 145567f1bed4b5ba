"""Convolutions that graphs have."""

from __future__ import annotations

from nacre.kernels.call import Primitive

GRAPH_CONVOLUTION: tuple[Primitive, ...] = ()

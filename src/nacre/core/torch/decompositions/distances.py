"""Distances between rows."""

from __future__ import annotations

from typing import Any

from nacre.core.torch.decompositions.table import decomposes
from nacre.core.torch.library import torch as library

torch: Any = library()
Tensor = Any


def _norm(away: Tensor, p: float) -> Tensor:
    """The p-norm over the last axis."""
    return torch.ops.aten.linalg_vector_norm.default(away, p, [-1])


@decomposes("_cdist_forward.default")
def cdist(a: Tensor, b: Tensor, p: float, compute_mode: int | None = None) -> Tensor:
    """Between every row of the one and every row of the other."""
    return _norm(a.unsqueeze(-2) - b.unsqueeze(-3), p)


@decomposes("_pdist_forward.default")
def pdist(x: Tensor, p: float = 2) -> Tensor:
    """Between every two rows, once each."""
    first, second = torch.triu_indices(x.shape[0], x.shape[0], 1)
    return _norm(x.index_select(0, first) - x.index_select(0, second), p)


@decomposes("dist.default")
def dist(a: Tensor, b: Tensor, p: float = 2) -> Tensor:
    """Between two tensors."""
    return _norm((a - b).reshape(-1), p)

"""Places in sorted sequences, and counts."""

from __future__ import annotations

from typing import Any

from nacre.core.torch.decompositions.table import decomposes
from nacre.core.torch.library import torch as library

torch: Any = library()
Tensor = Any


@decomposes("searchsorted.Tensor", "searchsorted.Scalar")
def searchsorted(
    sequence: Tensor,
    values: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """How many elements of a sorted sequence stand before each value: all are compared."""
    if sorter is not None:
        sequence = sequence.gather(-1, sorter)
    if not hasattr(values, "dtype"):
        values = torch.full((), values, dtype=sequence.dtype)
    wide = values.unsqueeze(-1)
    line = sequence if sequence.dim() == 1 else sequence.unsqueeze(-2)
    # Written so that a NaN stands behind all.
    behind = line > wide if right or side == "right" else line >= wide
    return (~behind).sum(-1).to(torch.int32 if out_int32 else torch.int64)


@decomposes("bucketize.Tensor", "bucketize.Scalar")
def bucketize(
    values: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """The same, the values first."""
    return searchsorted(boundaries, values, out_int32=out_int32, right=right)


@decomposes("histc.default")
def histc(x: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements fall into each of some equal intervals."""
    flat = x.reshape(-1)
    low: Tensor = torch.full((), float(min), dtype=x.dtype)
    high: Tensor = torch.full((), float(max), dtype=x.dtype)
    if min == max:
        low, high = flat.amin(), flat.amax()
        is_flat = low == high
        low, high = torch.where(is_flat, low - 1, low), torch.where(is_flat, high + 1, high)
    place = ((flat - low) / (high - low) * bins).floor().clamp(0, bins - 1)
    inside = (flat >= low) & (flat <= high)
    hits = (place.unsqueeze(-1) == torch.arange(bins)) & inside.unsqueeze(-1)
    return hits.sum(0).to(x.dtype)

"""Elements between others, and sums of rows of a table."""

from __future__ import annotations

from itertools import product
from typing import Any

from nacre.core.torch.decompositions.table import decomposes
from nacre.core.torch.library import torch as library

torch: Any = library()
Tensor = Any

_ZEROS, _BORDER, _REFLECTION = range(3)
_NEAREST = 1


def _grid_coordinate(at: Tensor, size: int, is_aligned: bool, padding: int) -> Tensor:
    """A coordinate between -1 and 1 as one of an axis, moved inside as the padding says."""
    if is_aligned:
        at = (at + 1) / 2 * (size - 1)
        low, high = 0.0, size - 1.0
    else:
        at = ((at + 1) * size - 1) / 2
        low, high = -0.5, size - 0.5
    if padding == _REFLECTION:
        wide = high - low
        if wide == 0:
            return torch.zeros_like(at)
        away = (at - low).abs()
        turns = (away / wide).floor()
        rest = away - turns * wide
        at = torch.where(turns % 2 == 0, rest + low, high - rest)
    return at if padding == _ZEROS else at.clamp(0, size - 1)


@decomposes("grid_sampler_3d.default")
def grid_sampler_3d(
    x: Tensor, grid: Tensor, interpolation: int, padding: int, align_corners: bool
) -> Tensor:
    """Elements at coordinates between -1 and 1, the last axis first."""
    batch, _, *dims = x.shape
    rank = len(dims)
    samples = [
        _grid_coordinate(grid[..., rank - 1 - axis], dims[axis], align_corners, padding)
        for axis in range(rank)
    ]
    around: list[list[tuple[Tensor, Tensor | None]]] = []
    for at in samples:
        if interpolation == _NEAREST:
            around.append([(at.round(), None)])
        else:
            below = at.floor()
            around.append([(below, below + 1 - at), (below + 1, at - below)])
    first = torch.arange(batch).reshape(batch, 1, 1, 1)
    total: Tensor = None
    for corner in product(*around):
        inside: Tensor = None
        weight: Tensor = None
        index = [first]
        for (place, part), size in zip(corner, dims, strict=True):
            there = (place >= 0) & (place <= size - 1)
            inside = there if inside is None else inside & there
            weight = part if weight is None or part is None else weight * part
            index.append(place.clamp(0, size - 1).to(torch.int64))
        taken = torch.ops.aten.index.Tensor(x.permute(0, 2, 3, 4, 1), index)
        taken = torch.where(inside.unsqueeze(-1), taken, 0.0)
        taken = taken if weight is None else taken * weight.unsqueeze(-1)
        total = taken if total is None else total + taken
    return total.permute(0, 4, 1, 2, 3)


_SUM, _MEAN, _MAX = range(3)


@decomposes("_embedding_bag.default", "_embedding_bag_forward_only.default")
def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Rows of a table, summed, averaged or compared within bags that begin at offsets."""
    starts = offsets[:-1] if include_last_offset else offsets
    count, bags = indices.shape[0], starts.shape[0]
    rows = torch.embedding(weight, indices)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    own = torch.searchsorted(starts, torch.arange(count), right=True) - 1
    member = own.unsqueeze(0) == torch.arange(bags).unsqueeze(1)
    if padding_idx >= 0:
        member = member & (indices != padding_idx)
    size = member.sum(1)
    if mode == _MAX:
        lowest = torch.full((), -float("inf"), dtype=rows.dtype)
        candidates = torch.where(member.unsqueeze(-1), rows, lowest)
        sums = torch.where(size.unsqueeze(-1) > 0, candidates.amax(1), 0.0)
        best = indices[candidates.argmax(1)]
        return sums, own, size, best
    sums = member.to(rows.dtype) @ rows
    if mode == _MEAN:
        sums = sums / size.clamp(min=1).unsqueeze(-1)
    return sums, own, size, size

"""Poolings whose windows have unequal sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nacre.core.torch.decompositions.table import decomposes
from nacre.core.torch.library import torch as library

torch: Any = library()
Tensor = Any


def _per_axis(given: Sequence[int] | int, rank: int) -> list[int]:
    numbers = [given] if isinstance(given, int) else list(given)
    return numbers * rank if len(numbers) == 1 else numbers


def _widen_windows(x: Tensor, axis: int, count: int) -> tuple[Tensor, int]:
    """Windows of an axis side by side; short ones have their last element more than once."""
    size = x.shape[axis]
    ends = [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]
    width = max(end - start for start, end in ends)
    first = torch.arange(count) * size // count
    last = ((torch.arange(count) + 1) * size + count - 1) // count - 1
    at = torch.minimum(first.unsqueeze(1) + torch.arange(width), last.unsqueeze(1))
    return x.index_select(axis, at.reshape(-1)), width


def _adaptive_max_pool(rank: int) -> Any:  # noqa: ANN401 - a decomposition
    def decomposed(x: Tensor, output_size: Sequence[int]) -> tuple[Tensor, Tensor]:
        """So many largest elements as asked for, and where they lie."""
        wanted, sizes = _per_axis(output_size, rank), x.shape[-rank:]
        plane = 1
        for size in sizes:
            plane *= size
        places = torch.arange(plane).reshape(sizes)
        kernel = []
        for axis in range(-rank, 0):
            x, width = _widen_windows(x, axis, wanted[axis])
            places, _ = _widen_windows(places, axis, wanted[axis])
            kernel.append(width)
        pool = getattr(torch.ops.aten, f"max_pool{rank}d_with_indices").default
        values, at = pool(x, kernel, kernel)
        return values, places.reshape(-1).index_select(0, at.reshape(-1)).reshape(at.shape)

    return decomposed


for _rank in (2, 3):
    decomposes(f"adaptive_max_pool{_rank}d.default")(_adaptive_max_pool(_rank))

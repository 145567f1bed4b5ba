"""Elements at places: diagonals, windows of an axis, replacements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nacre.core.torch.decompositions.table import decomposes
from nacre.core.torch.library import torch as library

torch: Any = library()
Tensor = Any


def _diagonal_indices(rows: int, columns: int, offset: int) -> Tensor:
    """Where the diagonal lies in a matrix whose rows follow each other."""
    first = offset if offset >= 0 else -offset * columns
    count = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    return torch.arange(count) * (columns + 1) + first


def _matrices_last(x: Tensor, dim1: int, dim2: int) -> Tensor:
    return x.movedim((dim1, dim2), (-2, -1))


@decomposes("diagonal.default", "diagonal_copy.default")
def diagonal(x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of matrices that two axes make."""
    matrices = _matrices_last(x, dim1, dim2)
    *outer, rows, columns = matrices.shape
    at = _diagonal_indices(rows, columns, offset)
    return matrices.reshape(*outer, rows * columns).index_select(-1, at)


@decomposes("diagonal_scatter.default")
def diagonal_scatter(x: Tensor, part: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:  # noqa: ANN401
    """The diagonal replaced."""
    matrices = _matrices_last(x, dim1, dim2)
    *outer, rows, columns = matrices.shape
    at = _diagonal_indices(rows, columns, offset)
    made = matrices.reshape(*outer, rows * columns).index_copy(-1, at, part)
    return made.reshape(matrices.shape).movedim((-2, -1), (dim1, dim2))


@decomposes("unfold.default", "unfold_copy.default")
def unfold(x: Tensor, dim: int, size: int, step: int) -> Tensor:
    """Windows along an axis; what lies inside of a window is a new last axis."""
    if x.dim() == 0:
        return x.reshape(1)[:size]
    dim %= x.dim()
    count = (x.shape[dim] - size) // step + 1
    at = torch.arange(count).unsqueeze(1) * step + torch.arange(size)
    picked = x.index_select(dim, at.reshape(-1))
    parted = picked.reshape(*x.shape[:dim], count, size, *x.shape[dim + 1 :])
    return parted.movedim(dim + 1, -1)


def _neutral(reduce: str, dtype: Any) -> float | int:  # noqa: ANN401 - torch.dtype
    """What changes nothing when it is combined."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    sign = -1 if reduce == "amax" else 1
    if dtype.is_floating_point:
        return sign * float("inf")
    limits = torch.iinfo(dtype)
    end: int = limits.min if reduce == "amax" else limits.max
    return end


@decomposes("scatter_reduce.two")
def scatter_reduce(
    x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Elements combined at an index of an axis each, with those that are there or without."""
    if reduce != "mean" and include_self:
        return NotImplemented  # an operation of Core IR
    call = torch.ops.aten.scatter_reduce.two
    start = x
    if not include_self:
        start = x.scatter(dim, index, _neutral(reduce, x.dtype))
    total = call(start, dim, index, src, "sum" if reduce == "mean" else reduce)
    if reduce != "mean":
        return total
    ones = torch.ones_like(x) if include_self else torch.zeros_like(x)
    count = ones.scatter_add(dim, index, torch.ones_like(src)).clamp(min=1)
    if x.dtype.is_floating_point:
        return total / count
    return torch.div(total, count, rounding_mode="floor")


@decomposes("index_reduce.default")
def index_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Parts of an axis combined."""
    shape = [1] * x.dim()
    shape[dim] = -1
    wide = index.reshape(shape).expand(source.shape)
    return torch.scatter_reduce(x, dim, wide, source, reduce, include_self=include_self)


@decomposes("put.default")
def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Elements replaced, or added to, where the index counts all of them."""
    flat = x.reshape(-1)
    made = flat.index_put((index.reshape(-1),), source.reshape(-1), accumulate)
    return made.reshape(x.shape)


@decomposes("masked_scatter.default")
def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Where a mask is true, the next element of a source."""
    x, mask = torch.broadcast_tensors(x, mask)
    at = (mask.reshape(-1).to(torch.int64).cumsum(0) - 1).clamp(0, source.numel() - 1)
    found = source.reshape(-1).index_select(0, at).reshape(x.shape)
    return torch.where(mask, found, x)


@decomposes("as_strided_scatter.default")
def as_strided_scatter(
    x: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], offset: int | None = None
) -> Tensor:
    """Elements replaced, by their distances in memory."""
    if not x.is_contiguous():
        return NotImplemented
    at = strided_indices(size, stride, offset or 0).reshape(-1)
    return x.reshape(-1).index_copy(0, at, src.reshape(-1)).reshape(x.shape)


def strided_indices(size: Sequence[int], stride: Sequence[int], offset: int) -> Tensor:
    """Where the elements of a strided view lie in memory."""
    at = torch.full([1] * len(size), offset)
    for axis, (count, step) in enumerate(zip(size, stride, strict=True)):
        shape = [1] * len(size)
        shape[axis] = count
        at = at + (torch.arange(count) * step).reshape(shape)
    return at


@decomposes("as_strided.default")
def as_strided(
    x: Tensor, size: Sequence[int], stride: Sequence[int], offset: int | None = None
) -> Tensor:
    """A part by distances in memory, of a tensor without gaps in it."""
    order = sorted(range(x.dim()), key=lambda axis: (-x.stride(axis), axis))
    ordered = x.permute(order)
    if not ordered.is_contiguous():
        return NotImplemented
    at = strided_indices(size, stride, offset or 0)
    return ordered.reshape(-1).index_select(0, at.reshape(-1)).reshape(size)


@decomposes("repeat_interleave.Tensor")
def repeat_interleave(repeats: Tensor, *, output_size: int | None = None) -> Tensor:
    """Each place so often as told, where it is known how many that are."""
    if output_size is None or not isinstance(output_size, int):
        return NotImplemented
    return torch.searchsorted(repeats.cumsum(0), torch.arange(output_size), right=True)

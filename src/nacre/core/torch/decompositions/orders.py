"""Orders and running extremes."""

from __future__ import annotations

from typing import Any

from nacre.core.torch.decompositions.table import decomposes
from nacre.core.torch.library import torch as library

torch: Any = library()
Tensor = Any


def _running_best(x: Tensor, dim: int, is_better: Any) -> tuple[Tensor, Tensor]:  # noqa: ANN401
    """The best element so far and its place, in rounds that double how far is looked back."""
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    best = x.movedim(dim, -1)
    count = best.shape[-1]
    place = torch.arange(count).expand(best.shape)
    reach = 1
    while reach < count:
        tail, before = best[..., reach:], best[..., :-reach]
        wins = is_better(before, tail)
        places = torch.where(wins, place[..., :-reach], place[..., reach:])
        best = torch.cat([best[..., :reach], torch.where(wins, before, tail)], -1)
        place = torch.cat([place[..., :reach], places], -1)
        reach *= 2
    return best.movedim(-1, dim), place.movedim(-1, dim)


@decomposes("cummax.default")
def cummax(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """The largest element so far; the last of equals, and a NaN above all."""
    return _running_best(x, dim, lambda old, new: ((old > new) | (old != old)) & (new == new))


@decomposes("cummin.default")
def cummin(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """The smallest element so far; the last of equals, and a NaN below all."""
    return _running_best(x, dim, lambda old, new: ((old < new) | (old != old)) & (new == new))


@decomposes("kthvalue.default")
def kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The k-th smallest element and its place."""
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    found = torch.ops.aten.topk.default(x, k, dim, False)
    values, places = (part.select(dim, k - 1) for part in found)
    return (values.unsqueeze(dim), places.unsqueeze(dim)) if keepdim else (values, places)


@decomposes("median.dim")
def median_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The lower of the middle elements; a NaN where there is one."""
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    value, place = kthvalue(x, (x.shape[dim] + 1) // 2, dim, keepdim)
    if not x.dtype.is_floating_point:
        return value, place
    is_nan = x != x
    odd = is_nan.any(dim, keepdim)
    first = torch.ops.aten.argmax.default(is_nan.to(torch.int8), dim, keepdim)
    return torch.where(odd, float("nan"), value), torch.where(odd, first, place)


@decomposes("median.default")
def median(x: Tensor) -> Tensor:
    """The lower of the middle elements of all."""
    return median_dim(x.reshape(-1), 0)[0]


@decomposes("nanmedian.dim")
def nanmedian_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The lower of the middle elements that are numbers."""
    if x.dim() == 0 or not x.dtype.is_floating_point:
        value, place = median_dim(x, dim, keepdim)
        return value, place
    values, places = torch.ops.aten.sort.default(x, dim)  # NaN is behind all others
    count = (x == x).sum(dim, keepdim=True)
    at = ((count - 1) // 2).clamp(min=0)
    value, place = values.gather(dim, at), places.gather(dim, at)
    return (value, place) if keepdim else (value.squeeze(dim), place.squeeze(dim))


@decomposes("nanmedian.default")
def nanmedian(x: Tensor) -> Tensor:
    """The lower of the middle elements that are numbers, of all."""
    return nanmedian_dim(x.reshape(-1), 0)[0]


@decomposes("mode.default")
def mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The element that stands most often, the smallest of several, and its last place."""
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    ordered, places = torch.ops.aten.sort.stable(x.movedim(dim, -1), stable=True, dim=-1)
    often = (ordered.unsqueeze(-1) == ordered.unsqueeze(-2)).sum(-1)
    at = often.argmax(-1, keepdim=True)  # the first of the smallest one
    at = at + often.gather(-1, at) - 1  # its last, as equal ones are neighbours
    value, place = ordered.gather(-1, at), places.gather(-1, at)
    value, place = value.movedim(-1, dim), place.movedim(-1, dim)
    return (value, place) if keepdim else (value.squeeze(dim), place.squeeze(dim))


@decomposes("nonzero_static.default")
def nonzero_static(x: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The places of the first elements that are not 0; behind them a number that is none."""
    flat = (x != 0).reshape(-1)
    count = flat.shape[0]
    keys = torch.where(flat, torch.arange(count), count)
    first = torch.ops.aten.sort.default(keys, 0)[0][:size]
    if size > count:
        first = torch.ops.aten.constant_pad_nd.default(first, [0, size - count], count)
    axes, rest = [], first
    for dim in reversed(x.shape):
        axes.append(rest % dim)
        rest = rest // dim
    if not axes:
        return torch.empty((size, 0), dtype=torch.int64)
    indices = torch.stack(axes[::-1], -1)
    return torch.where((first < count).unsqueeze(-1), indices, fill_value)

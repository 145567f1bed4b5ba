"""Poolings of ATen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import inf, prod
from typing import Any

from nacre.base.elements import GRAPH_TYPES
from nacre.core.torch.elements import dtype_of
from nacre.core.torch.handlers.shapes import sliced
from nacre.core.torch.handlers.table import handles
from nacre.core.torch.handlers.windows import batched, several
from nacre.core.torch.library import torch
from nacre.core.torch.use import AtenCall
from nacre.core.unsupported import Unsupported


def _rank(use: AtenCall) -> int:
    """How many axes the windows have: the name says it."""
    return next(int(c) for c in use.name if c.isdigit())


def _windows(use: AtenCall, rank: int) -> dict[str, Any]:
    kernel = several(use.get("kernel_size"), rank, 1)
    stride = use.get("stride")
    return {
        "kernel": kernel,
        "strides": several(stride, rank, 1) if stride else kernel,  # none given: side by side
        "pads": several(use.get("padding"), rank, 0) * 2,
        "ceil": bool(use.get("ceil_mode", False)),
    }


@handles("max_pool1d.default", "max_pool2d.default", "max_pool3d.default")
def max_pool(use: AtenCall) -> int:
    """The largest element of each window."""
    return _largest(use)


def _largest(use: AtenCall) -> int:
    rank = _rank(use)
    x, _ = batched(use, "self", rank)
    dilations = several(use.get("dilation"), rank, 1)
    made = use.add("MaxPool", x, dilations=dilations, **_windows(use, rank))
    return use.reshaped(made, use.shape)


@handles("max_pool2d_with_indices.default", "max_pool3d_with_indices.default")
def max_pool_with_places(use: AtenCall) -> list[int | Callable[[], int]]:
    """The same, and where each lies, for who wants to know."""
    return [_largest(use), lambda: _places(use)]


def _places(use: AtenCall) -> int:
    """Where the largest element of each window lies, counted over the axes of the windows.

    All places of a window are laid beside each other, and the best of them is sought.
    """
    rank = _rank(use)
    sizes, shape = use.shape_of("self")[-rank:], use.shape[-rank:]
    kernel, strides, pads, _ = _windows(use, rank).values()
    dilations = several(use.get("dilation"), rank, 1)
    parts = _laid_out(use, kernel, strides, pads, dilations)
    best = use.add("ArgMax", use.add("Concat", *parts, axis=len(use.shape)), axis=len(use.shape))
    place = use.taken(torch().zeros((), dtype=torch().int64))
    left = prod(kernel)
    for axis, size in enumerate(sizes):
        left //= kernel[axis]
        own = use.binary("Mod", use.binary("Div", best, use.taken(left, "i64")),
                         use.taken(kernel[axis], "i64"))  # fmt: skip
        line = [shape[axis] if a == axis else 1 for a in range(rank)]
        first = (torch().arange(shape[axis]) * strides[axis] - pads[axis]).reshape(line)
        inner = use.binary("Mul", own, use.taken(dilations[axis], "i64"))
        along = use.binary("Add", inner, use.taken(first))
        place = use.binary("Add", use.binary("Mul", place, use.taken(size, "i64")), along)
    return place


def _laid_out(
    use: AtenCall,
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
) -> list[int]:
    """For each place of a window, the elements that lie there, with a last axis of 1."""
    rank, whole = len(kernel), len(use.shape)
    sizes, shape = use.shape_of("self")[-rank:], use.shape[-rank:]
    before, behind = [0] * whole, [0] * whole
    for a in range(rank):
        reach = (shape[a] - 1) * strides[a] + (kernel[a] - 1) * dilations[a] + 1
        before[a - rank], behind[a - rank] = pads[a], max(reach - sizes[a] - pads[a], 0)
    x = use.value("self")
    if not GRAPH_TYPES[use.dtype].is_integer:
        x = use.add("Pad", x, pads=(*before, *behind), value=-inf)
    elif any((*before, *behind)):
        raise Unsupported("the places of a padded pooling of integers", "cast to float first")
    parts = []
    for offset in product(*map(range, kernel)):
        taken = {}
        for a in range(rank):
            start = offset[a] * dilations[a]
            end = start + (shape[a] - 1) * strides[a] + 1
            taken[whole - rank + a] = (start, end, strides[a])
        parts.append(use.reshaped(sliced(use, x, taken), (*use.shape, 1)))
    return parts


@handles("avg_pool1d.default", "avg_pool2d.default", "avg_pool3d.default")
def avg_pool(use: AtenCall) -> int:
    """The mean of each window, or its sum over a number of the user's."""
    rank = _rank(use)
    x, _ = batched(use, "self", rank)
    given = _windows(use, rank)
    count_pad = bool(use.get("count_include_pad", True))
    divisor = use.get("divisor_override")
    if divisor is None:
        made = use.add("AvgPool", x, count_pad=count_pad, **given)
        return use.reshaped(made, use.shape)
    if given.pop("ceil"):  # what hangs over the end counts as zeros then
        x = _lengthened(use, x, rank, given)
    made = use.add("AvgPool", x, count_pad=True, **given)
    factor = use.scalar(prod(given["kernel"]) / divisor, use.dtype)
    return use.reshaped(use.binary("Mul", made, factor), use.shape)


def _lengthened(use: AtenCall, x: int, rank: int, given: dict[str, Any]) -> int:
    """Zeros behind, so that no window hangs over the end."""
    dims = use.type_of(x).shape
    ends = [0] * len(dims)
    for a in range(-rank, 0):
        reach = (use.shape[a] - 1) * given["strides"][a] + given["kernel"][a]
        ends[a] = max(reach - dims[a] - 2 * given["pads"][a], 0)
    return use.add("Pad", x, pads=(*[0] * len(dims), *ends)) if any(ends) else x


@handles("adaptive_avg_pool1d.default", "adaptive_avg_pool2d.default",
         "adaptive_avg_pool3d.default", "_adaptive_avg_pool2d.default",
         "_adaptive_avg_pool3d.default")  # fmt: skip
def adaptive_avg_pool(use: AtenCall) -> int:
    """So many means as asked for; windows of unequal size are products with constants."""
    rank = _rank(use)
    sizes, wanted = use.shape_of("self")[-rank:], use.shape[-rank:]
    if set(wanted) == {1}:
        whole = len(use.shape)
        axes = tuple(range(whole - rank, whole))
        return use.add("Mean", use.value("self"), axes=axes, keepdims=True)
    if all(size % count == 0 for size, count in zip(sizes, wanted, strict=True)):
        x, _ = batched(use, "self", rank)
        kernel = tuple(size // count for size, count in zip(sizes, wanted, strict=True))
        made = use.add("AvgPool", x, kernel=kernel, strides=kernel)
        return use.reshaped(made, use.shape)
    return _by_products(use, sizes, wanted)


def _by_products(use: AtenCall, sizes: Sequence[int], wanted: Sequence[int]) -> int:
    x, last = use.value("self"), len(use.shape) - 1
    for place, (size, count) in enumerate(zip(reversed(sizes), reversed(wanted), strict=True)):
        weights = torch().zeros((count, size), dtype=torch().float64)
        for index in range(count):
            start, end = index * size // count, -(-(index + 1) * size // count)
            weights[index, start:end] = 1 / (end - start)
        order = list(range(last + 1))
        order[last - place], order[last] = last, last - place
        constant = use.taken(weights.to(dtype_of(use.dtype)))
        made = use.add("Linear", use.transposed(x, order), constant)
        x = use.transposed(made, order)
    return x

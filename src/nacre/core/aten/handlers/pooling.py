"""Poolings."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import inf, prod
from typing import Any

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.aten.call import AtenCall, Later
from nacre.core.aten.handlers.parts import slice_part
from nacre.core.aten.handlers.windows import add_batch, drop_batch, per_axis
from nacre.core.aten.table import handles
from nacre.core.unsupported import Unsupported


def _rank(use: AtenCall) -> int:
    """How many axes the windows have: the name says it."""
    return next(int(c) for c in use.name if c.isdigit())


def _windows(use: AtenCall, rank: int) -> dict[str, Any]:
    kernel = per_axis(use, "kernel_size", rank, 1)
    return {
        "kernel": kernel,
        "strides": per_axis(use, "stride", rank, 1) if use.integers("stride") else kernel,
        "pads": per_axis(use, "padding", rank, 0) * 2,
        "ceil": bool(use.get("ceil_mode", False)),
    }


@handles("max_pool1d.default", "max_pool2d.default", "max_pool3d.default")
def max_pool(use: AtenCall) -> int:
    """The largest element of each window."""
    return _largest(use)


def _largest(use: AtenCall) -> int:
    rank = _rank(use)
    x, is_single = add_batch(use, "self", rank)
    dilations = per_axis(use, "dilation", rank, 1)
    made = use.add("MaxPool", x, dilations=dilations, **_windows(use, rank))
    return drop_batch(use, made, is_single)


@handles("max_pool2d_with_indices.default", "max_pool3d_with_indices.default")
def max_pool_with_places(use: AtenCall) -> list[int | Later]:
    """The same, and where each lies, for who wants to know."""
    made = _largest(use)
    return [made, lambda: _window_places(use, use.type_of(made).shape)]


def _window_places(use: AtenCall, whole: Sequence[int]) -> int:
    """Where the largest element of each window lies, counted over the axes of the windows.

    All places of a window are laid beside each other, and the best of them is sought.
    """
    rank = _rank(use)
    sizes, shape = use.shape_of("self")[-rank:], whole[-rank:]
    kernel, strides, pads, _ = _windows(use, rank).values()
    dilations = per_axis(use, "dilation", rank, 1)
    use.require_operations(2 * prod(kernel))
    parts = _window_elements(use, whole, kernel, strides, pads, dilations)
    best = use.add("ArgMax", use.add("Concat", *parts, axis=len(whole)), axis=len(whole))
    place, left = use.scalar(0, "i64"), prod(kernel)
    for axis, size in enumerate(sizes):
        left //= kernel[axis]
        own = use.binary("Div", best, use.scalar(left, "i64"))
        own = use.binary("Mod", own, use.scalar(kernel[axis], "i64"))
        line = [shape[axis] if a == axis else 1 for a in range(rank)]
        first = (np.arange(shape[axis]) * strides[axis] - pads[axis]).reshape(line)
        inner = use.binary("Mul", own, use.scalar(dilations[axis], "i64"))
        along = use.binary("Add", inner, use.constant(first, "i64"))
        place = use.binary("Add", use.binary("Mul", place, use.scalar(size, "i64")), along)
    return place


def _window_elements(
    use: AtenCall,
    whole: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
) -> list[int]:
    """For each place of a window, the elements that lie there, with a last axis of 1."""
    rank, sizes = len(kernel), use.shape_of("self")[-len(kernel) :]
    shape = whole[-rank:]
    before, behind = [0] * len(whole), [0] * len(whole)
    for a in range(rank):
        reach = (shape[a] - 1) * strides[a] + (kernel[a] - 1) * dilations[a] + 1
        before[a - rank], behind[a - rank] = pads[a], max(reach - sizes[a] - pads[a], 0)
    x = use.value("self")
    if not GRAPH_TYPES[use.dtype_of("self")].is_integer:
        x = use.add("Pad", x, pads=(*before, *behind), value=-inf)
    elif any((*before, *behind)):
        raise Unsupported("the places of a padded pooling of integers", "cast to float first")
    parts = []
    for offset in product(*map(range, kernel)):
        taken = {}
        for a in range(rank):
            start = offset[a] * dilations[a]
            end = start + (shape[a] - 1) * strides[a] + 1
            taken[len(whole) - rank + a] = (start, end, strides[a])
        parts.append(use.reshape(slice_part(use, x, taken), (*whole, 1)))
    return parts


@handles("avg_pool1d.default", "avg_pool2d.default", "avg_pool3d.default")
def avg_pool(use: AtenCall) -> int:
    """The mean of each window, or its sum over a number of the user's."""
    rank = _rank(use)
    x, is_single = add_batch(use, "self", rank)
    given = _windows(use, rank)
    if not use.has("divisor_override"):
        count_pad = bool(use.get("count_include_pad", True))
        return drop_batch(use, use.add("AvgPool", x, count_pad=count_pad, **given), is_single)
    divisor = use.integer("divisor_override")
    if divisor == 0:
        raise Unsupported("`divisor_override` is 0")
    if given.pop("ceil"):  # what hangs over the end counts as zeros then
        x = _lengthen(use, x, rank, given)
    size = float(prod(given["kernel"]))
    made = use.add("AvgPool", x, count_pad=True, **given)
    made = use.binary("Mul", made, use.scalar(size / divisor, use.type_of(made).dtype))
    return drop_batch(use, made, is_single)


def _lengthen(use: AtenCall, x: int, rank: int, given: dict[str, Any]) -> int:
    """Zeros behind, so that no window hangs over the end; each starts inside, or in the pads."""
    dims = use.type_of(x).shape
    ends = [0] * len(dims)
    for a in range(-rank, 0):
        kernel, stride, pad = (given[name][a] for name in ("kernel", "strides", "pads"))
        steps = -(-(dims[a] + 2 * pad - kernel) // stride)
        steps -= steps * stride >= dims[a] + pad
        ends[a] = max(steps * stride + kernel - dims[a] - 2 * pad, 0)
    return use.add("Pad", x, pads=(*[0] * len(dims), *ends)) if any(ends) else x


def _output_size(use: AtenCall, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    dims = use.shape_of("self")
    if len(dims) not in (rank + 1, rank + 2):
        raise Unsupported(f"a tensor of rank {len(dims)}")
    wanted = per_axis(use, "output_size", rank, 1)
    if min(wanted) < 1:
        raise Unsupported(f"an output of {list(wanted)}")
    return dims[-rank:], wanted


@handles("adaptive_avg_pool1d.default", "adaptive_avg_pool2d.default",
         "adaptive_avg_pool3d.default", "_adaptive_avg_pool2d.default",
         "_adaptive_avg_pool3d.default")  # fmt: skip
def adaptive_avg_pool(use: AtenCall) -> int:
    """So many means as asked for; windows of unequal size are products with constants."""
    rank = _rank(use)
    sizes, wanted = _output_size(use, rank)
    if set(wanted) == {1}:
        whole = len(use.shape_of("self"))
        axes = tuple(range(whole - rank, whole))
        return use.add("Mean", use.value("self"), axes=axes, keepdims=True)
    if all(size % count == 0 for size, count in zip(sizes, wanted, strict=True)):
        x, is_single = add_batch(use, "self", rank)
        kernel = tuple(size // count for size, count in zip(sizes, wanted, strict=True))
        return drop_batch(use, use.add("AvgPool", x, kernel=kernel, strides=kernel), is_single)
    return _by_products(use, sizes, wanted)


def _by_products(use: AtenCall, sizes: Sequence[int], wanted: Sequence[int]) -> int:
    x, last = use.value("self"), len(use.shape_of("self")) - 1
    dtype = use.dtype_of("self")
    for place, (size, count) in enumerate(zip(reversed(sizes), reversed(wanted), strict=True)):
        use.affordable((size, count))
        weights = np.zeros((count, size))
        for index in range(count):
            start, end = index * size // count, -(-(index + 1) * size // count)
            weights[index, start:end] = 1 / (end - start)
        order = list(range(last + 1))
        order[last - place], order[last] = last, last - place
        made = use.add("Linear", use.transpose(x, order), use.constant(weights, dtype))
        x = use.transpose(made, order)
    return x


@handles("adaptive_max_pool1d.default", "adaptive_max_pool2d.default",
         "adaptive_max_pool3d.default")  # fmt: skip
def adaptive_max_pool(use: AtenCall) -> list[int]:
    """So many largest elements as asked for, of windows of one size."""
    rank = _rank(use)
    sizes, wanted = _output_size(use, rank)
    if any(size % count for size, count in zip(sizes, wanted, strict=True)):
        raise Unsupported(f"{list(sizes)} does not divide into {list(wanted)}")
    x, is_single = add_batch(use, "self", rank)
    kernel = tuple(size // count for size, count in zip(sizes, wanted, strict=True))
    return [drop_batch(use, use.add("MaxPool", x, kernel=kernel, strides=kernel), is_single)]

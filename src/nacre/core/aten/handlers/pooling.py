"""Poolings."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import inf, prod
from typing import Any

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.aten.call import AtenCall, LazyValue
from nacre.core.aten.handlers.parts import slice_part
from nacre.core.aten.handlers.windows import add_batch, drop_batch, per_axis
from nacre.core.aten.table import handles
from nacre.core.unsupported import Unsupported


def _rank(call: AtenCall) -> int:
    """How many axes the windows have: the name says it."""
    return next(int(c) for c in call.name if c.isdigit())


def _windows(call: AtenCall, rank: int) -> dict[str, Any]:
    kernel = per_axis(call, "kernel_size", rank, 1)
    return {
        "kernel": kernel,
        "strides": per_axis(call, "stride", rank, 1) if call.integers("stride") else kernel,
        "pads": per_axis(call, "padding", rank, 0) * 2,
        "ceil": bool(call.get("ceil_mode", False)),
    }


@handles("max_pool1d.default", "max_pool2d.default", "max_pool3d.default")
def max_pool(call: AtenCall) -> int:
    """The largest element of each window."""
    return _max_pool(call)


def _max_pool(call: AtenCall) -> int:
    rank = _rank(call)
    x, is_single = add_batch(call, "self", rank)
    dilations = per_axis(call, "dilation", rank, 1)
    made = call.add("MaxPool", x, dilations=dilations, **_windows(call, rank))
    return drop_batch(call, made, is_single)


@handles("max_pool2d_with_indices.default", "max_pool3d_with_indices.default")
def max_pool_with_indices(call: AtenCall) -> list[int | LazyValue]:
    """The same, and where each lies, for who wants to know."""
    made = _max_pool(call)
    return [made, lambda: _window_indices(call, call.type_of(made).shape)]


def _window_indices(call: AtenCall, whole: Sequence[int]) -> int:
    """Where the largest element of each window lies, counted over the axes of the windows.

    All places of a window are laid beside each other, and the best of them is sought.
    """
    rank = _rank(call)
    sizes, shape = call.shape_of("self")[-rank:], whole[-rank:]
    kernel, strides, pads, _ = _windows(call, rank).values()
    dilations = per_axis(call, "dilation", rank, 1)
    call.require_operations(2 * prod(kernel))
    parts = _window_elements(call, whole, kernel, strides, pads, dilations)
    best = call.add("ArgMax", call.add("Concat", *parts, axis=len(whole)), axis=len(whole))
    place, left = call.scalar(0, "i64"), prod(kernel)
    for axis, size in enumerate(sizes):
        left //= kernel[axis]
        own = call.binary("Div", best, call.scalar(left, "i64"))
        own = call.binary("Mod", own, call.scalar(kernel[axis], "i64"))
        line = [shape[axis] if a == axis else 1 for a in range(rank)]
        first = (np.arange(shape[axis]) * strides[axis] - pads[axis]).reshape(line)
        inner = call.binary("Mul", own, call.scalar(dilations[axis], "i64"))
        along = call.binary("Add", inner, call.constant(first, "i64"))
        place = call.binary("Add", call.binary("Mul", place, call.scalar(size, "i64")), along)
    return place


def _window_elements(
    call: AtenCall,
    whole: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
) -> list[int]:
    """For each place of a window, the elements that lie there, with a last axis of 1."""
    rank, sizes = len(kernel), call.shape_of("self")[-len(kernel) :]
    shape = whole[-rank:]
    before, behind = [0] * len(whole), [0] * len(whole)
    for a in range(rank):
        reach = (shape[a] - 1) * strides[a] + (kernel[a] - 1) * dilations[a] + 1
        before[a - rank], behind[a - rank] = pads[a], max(reach - sizes[a] - pads[a], 0)
    x = call.value("self")
    if not GRAPH_TYPES[call.dtype_of("self")].is_integer:
        x = call.add("Pad", x, pads=(*before, *behind), value=-inf)
    elif any((*before, *behind)):
        raise Unsupported("the places of a padded pooling of integers", "cast to float first")
    parts = []
    for offset in product(*map(range, kernel)):
        taken = {}
        for a in range(rank):
            start = offset[a] * dilations[a]
            end = start + (shape[a] - 1) * strides[a] + 1
            taken[len(whole) - rank + a] = (start, end, strides[a])
        parts.append(call.reshape(slice_part(call, x, taken), (*whole, 1)))
    return parts


@handles("avg_pool1d.default", "avg_pool2d.default", "avg_pool3d.default")
def avg_pool(call: AtenCall) -> int:
    """The mean of each window, or its sum over a number of the user's."""
    rank = _rank(call)
    x, is_single = add_batch(call, "self", rank)
    given = _windows(call, rank)
    if not call.has("divisor_override"):
        count_pad = bool(call.get("count_include_pad", True))
        return drop_batch(call, call.add("AvgPool", x, count_pad=count_pad, **given), is_single)
    divisor = call.integer("divisor_override")
    if divisor == 0:
        raise Unsupported("`divisor_override` is 0")
    if given.pop("ceil"):  # what hangs over the end counts as zeros then
        x = _pad_to_whole_windows(call, x, rank, given)
    size = float(prod(given["kernel"]))
    means = call.add("AvgPool", x, count_pad=True, **given)
    means = call.binary("Mul", means, call.scalar(size / divisor, call.type_of(means).dtype))
    return drop_batch(call, means, is_single)


def _pad_to_whole_windows(call: AtenCall, x: int, rank: int, given: dict[str, Any]) -> int:
    """Zeros behind, so that no window hangs over the end; each starts inside, or in the pads."""
    dims = call.type_of(x).shape
    ends = [0] * len(dims)
    for a in range(-rank, 0):
        kernel, stride, pad = (given[name][a] for name in ("kernel", "strides", "pads"))
        steps = -(-(dims[a] + 2 * pad - kernel) // stride)
        steps -= steps * stride >= dims[a] + pad
        ends[a] = max(steps * stride + kernel - dims[a] - 2 * pad, 0)
    return call.add("Pad", x, pads=(*[0] * len(dims), *ends)) if any(ends) else x


def _output_size(call: AtenCall, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    dims = call.shape_of("self")
    if len(dims) not in (rank + 1, rank + 2):
        raise Unsupported(f"a tensor of rank {len(dims)}")
    wanted = per_axis(call, "output_size", rank, 1)
    if min(wanted) < 1:
        raise Unsupported(f"an output of {list(wanted)}")
    return dims[-rank:], wanted


@handles("adaptive_avg_pool1d.default", "adaptive_avg_pool2d.default",
         "adaptive_avg_pool3d.default", "_adaptive_avg_pool2d.default",
         "_adaptive_avg_pool3d.default")  # fmt: skip
def adaptive_avg_pool(call: AtenCall) -> int:
    """So many means as asked for; windows of unequal size are products with constants."""
    rank = _rank(call)
    sizes, wanted = _output_size(call, rank)
    if set(wanted) == {1}:
        whole = len(call.shape_of("self"))
        axes = tuple(range(whole - rank, whole))
        return call.add("Mean", call.value("self"), axes=axes, keepdims=True)
    if all(size % count == 0 for size, count in zip(sizes, wanted, strict=True)):
        x, is_single = add_batch(call, "self", rank)
        kernel = tuple(size // count for size, count in zip(sizes, wanted, strict=True))
        return drop_batch(call, call.add("AvgPool", x, kernel=kernel, strides=kernel), is_single)
    return _pool_by_products(call, sizes, wanted)


def _pool_by_products(call: AtenCall, sizes: Sequence[int], wanted: Sequence[int]) -> int:
    x, last = call.value("self"), len(call.shape_of("self")) - 1
    dtype = call.dtype_of("self")
    for place, (size, count) in enumerate(zip(reversed(sizes), reversed(wanted), strict=True)):
        call.require_affordable((size, count))
        weights = np.zeros((count, size))
        for index in range(count):
            start, end = index * size // count, -(-(index + 1) * size // count)
            weights[index, start:end] = 1 / (end - start)
        order = list(range(last + 1))
        order[last - place], order[last] = last, last - place
        product = call.add("Linear", call.transpose(x, order), call.constant(weights, dtype))
        x = call.transpose(product, order)
    return x


@handles("adaptive_max_pool1d.default", "adaptive_max_pool2d.default",
         "adaptive_max_pool3d.default")  # fmt: skip
def adaptive_max_pool(call: AtenCall) -> list[int]:
    """So many largest elements as asked for, of windows of one size."""
    rank = _rank(call)
    sizes, wanted = _output_size(call, rank)
    if any(size % count for size, count in zip(sizes, wanted, strict=True)):
        raise Unsupported(f"{list(sizes)} does not divide into {list(wanted)}")
    x, is_single = add_batch(call, "self", rank)
    kernel = tuple(size // count for size, count in zip(sizes, wanted, strict=True))
    return [drop_batch(call, call.add("MaxPool", x, kernel=kernel, strides=kernel), is_single)]

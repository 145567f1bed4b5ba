"""Poolings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nacre.core.aten.call import AtenCall
from nacre.core.aten.handlers.windows import batched, several, unbatched
from nacre.core.aten.table import handles
from nacre.core.unsupported import Unsupported


def _rank(use: AtenCall) -> int:
    """How many axes the windows have: the name says it."""
    return next(int(c) for c in use.name if c.isdigit())


def _windows(use: AtenCall, rank: int) -> dict[str, Any]:
    kernel = several(use, "kernel_size", rank, 1)
    return {
        "kernel": kernel,
        "strides": several(use, "stride", rank, 1) if use.integers("stride") else kernel,
        "pads": several(use, "padding", rank, 0) * 2,
        "ceil": bool(use.get("ceil_mode", False)),
    }


@handles("max_pool1d.default", "max_pool2d.default", "max_pool3d.default",
         "max_pool2d_with_indices.default", "max_pool3d_with_indices.default")  # fmt: skip
def max_pool(use: AtenCall) -> int | list[int]:
    """The largest element of each window; where it lies has no form."""
    rank = _rank(use)
    x, is_single = batched(use, "self", rank)
    dilations = several(use, "dilation", rank, 1)
    made = use.add("MaxPool", x, dilations=dilations, **_windows(use, rank))
    made = unbatched(use, made, is_single)
    return [made] if "indices" in use.name else made


@handles("avg_pool1d.default", "avg_pool2d.default", "avg_pool3d.default")
def avg_pool(use: AtenCall) -> int:
    """The mean of each window, or its sum over a number of the user's."""
    rank = _rank(use)
    x, is_single = batched(use, "self", rank)
    given = _windows(use, rank)
    if not use.has("divisor_override"):
        count_pad = bool(use.get("count_include_pad", True))
        return unbatched(use, use.add("AvgPool", x, count_pad=count_pad, **given), is_single)
    divisor = use.integer("divisor_override")
    if given["ceil"] or divisor == 0:
        raise Unsupported("`divisor_override` is 0, or stands with `ceil_mode`")
    size = float(np.prod(given["kernel"]))
    made = use.add("AvgPool", x, count_pad=True, **given)
    made = use.binary("Mul", made, use.scalar(size / divisor, use.type_of(made).dtype))
    return unbatched(use, made, is_single)


def _wanted(use: AtenCall, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    dims = use.shape_of("self")
    if len(dims) not in (rank + 1, rank + 2):
        raise Unsupported(f"a tensor of rank {len(dims)}")
    wanted = several(use, "output_size", rank, 1)
    if min(wanted) < 1:
        raise Unsupported(f"an output of {list(wanted)}")
    return dims[-rank:], wanted


@handles("adaptive_avg_pool1d.default", "adaptive_avg_pool2d.default",
         "adaptive_avg_pool3d.default", "_adaptive_avg_pool2d.default",
         "_adaptive_avg_pool3d.default")  # fmt: skip
def adaptive_avg_pool(use: AtenCall) -> int:
    """So many means as asked for; windows of unequal size are products with constants."""
    rank = _rank(use)
    sizes, wanted = _wanted(use, rank)
    if set(wanted) == {1}:
        whole = len(use.shape_of("self"))
        axes = tuple(range(whole - rank, whole))
        return use.add("Mean", use.value("self"), axes=axes, keepdims=True)
    if all(size % count == 0 for size, count in zip(sizes, wanted, strict=True)):
        x, is_single = batched(use, "self", rank)
        kernel = tuple(size // count for size, count in zip(sizes, wanted, strict=True))
        return unbatched(use, use.add("AvgPool", x, kernel=kernel, strides=kernel), is_single)
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
        made = use.add("Linear", use.transposed(x, order), use.constant(weights, dtype))
        x = use.transposed(made, order)
    return x


@handles("adaptive_max_pool1d.default", "adaptive_max_pool2d.default",
         "adaptive_max_pool3d.default")  # fmt: skip
def adaptive_max_pool(use: AtenCall) -> list[int]:
    """So many largest elements as asked for, of windows of one size."""
    rank = _rank(use)
    sizes, wanted = _wanted(use, rank)
    if any(size % count for size, count in zip(sizes, wanted, strict=True)):
        raise Unsupported(f"{list(sizes)} does not divide into {list(wanted)}")
    x, is_single = batched(use, "self", rank)
    kernel = tuple(size // count for size, count in zip(sizes, wanted, strict=True))
    return [unbatched(use, use.add("MaxPool", x, kernel=kernel, strides=kernel), is_single)]

"""Poolings of ATen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nacre.core.onnx.findings import NoForm
from nacre.core.torch.elements import dtype_of
from nacre.core.torch.handlers import handles
from nacre.core.torch.library import torch
from nacre.core.torch.use import Use
from nacre.core.torch.windows import batched, several


def _rank(use: Use) -> int:
    """How many axes the windows have: the name says it."""
    return next(int(c) for c in use.name if c.isdigit())


def _windows(use: Use, rank: int) -> dict[str, Any]:
    kernel = several(use.get("kernel_size"), rank, 1)
    stride = use.get("stride")
    return {
        "kernel": kernel,
        "strides": several(stride, rank, 1) if stride else kernel,  # none given: side by side
        "pads": several(use.get("padding"), rank, 0) * 2,
        "ceil": bool(use.get("ceil_mode", False)),
    }


@handles("max_pool1d.default", "max_pool2d.default", "max_pool3d.default",
         "max_pool2d_with_indices.default", "max_pool3d_with_indices.default",
         "max_pool1d_with_indices.default")  # fmt: skip
def max_pool(use: Use) -> int | list[int]:
    """The largest element of each window; where it lies has no form."""
    rank = _rank(use)
    x, _ = batched(use, "self", rank)
    dilations = several(use.get("dilation"), rank, 1)
    made = use.add("MaxPool", x, dilations=dilations, **_windows(use, rank))
    made = use.reshaped(made, use.shape)
    return [made] if "indices" in use.name else made


@handles("avg_pool1d.default", "avg_pool2d.default", "avg_pool3d.default")
def avg_pool(use: Use) -> int:
    """The mean of each window, or its sum over a number of the user's."""
    rank = _rank(use)
    x, _ = batched(use, "self", rank)
    given = _windows(use, rank)
    count_pad = bool(use.get("count_include_pad", True))
    divisor = use.get("divisor_override")
    if divisor is None:
        made = use.add("AvgPool", x, count_pad=count_pad, **given)
        return use.reshaped(made, use.shape)
    if given["ceil"]:
        raise NoForm("`divisor_override` with `ceil_mode`", "pad first, then pool")
    size = 1
    for side in given["kernel"]:
        size *= side
    made = use.add("AvgPool", x, count_pad=True, **given)
    factor = use.scalar(size / divisor, use.dtype)
    return use.reshaped(use.binary("Mul", made, factor), use.shape)


@handles("adaptive_avg_pool1d.default", "adaptive_avg_pool2d.default",
         "adaptive_avg_pool3d.default", "_adaptive_avg_pool2d.default",
         "_adaptive_avg_pool3d.default")  # fmt: skip
def adaptive_avg_pool(use: Use) -> int:
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


def _by_products(use: Use, sizes: Sequence[int], wanted: Sequence[int]) -> int:
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


@handles("adaptive_max_pool1d.default", "adaptive_max_pool2d.default",
         "adaptive_max_pool3d.default")  # fmt: skip
def adaptive_max_pool(use: Use) -> list[int]:
    """So many largest elements as asked for, of windows of one size."""
    rank = _rank(use)
    sizes, wanted = use.shape_of("self")[-rank:], use.shape[-rank:]
    if any(size % count for size, count in zip(sizes, wanted, strict=True)):
        raise NoForm(
            f"{list(sizes)} does not divide into {list(wanted)}", "use `max_pool` with a kernel"
        )
    x, _ = batched(use, "self", rank)
    kernel = tuple(size // count for size, count in zip(sizes, wanted, strict=True))
    return [use.reshaped(use.add("MaxPool", x, kernel=kernel, strides=kernel), use.shape)]

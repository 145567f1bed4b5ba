"""Tensors whose elements follow from a shape alone: known at import."""

from __future__ import annotations

from nacre.core.torch.handlers.table import handles
from nacre.core.torch.library import torch
from nacre.core.torch.use import AtenCall, Tensor


@handles("zeros_like.default", "ones_like.default", "empty_like.default", "new_zeros.default",
         "new_ones.default", "new_empty.default")  # fmt: skip
def filled(use: AtenCall) -> Tensor:
    """Zeros or ones; a tensor that nothing fills has zeros."""
    number = 1 if "ones" in use.name else 0
    return torch().full(use.shape, number, dtype=use.result.dtype)


@handles("full_like.default", "new_full.default")
def full(use: AtenCall) -> Tensor:
    """One number everywhere."""
    return torch().full(use.shape, use.get("fill_value"), dtype=use.result.dtype)


@handles("full.default")
def full_computed(use: AtenCall) -> int:
    """One computed number everywhere."""
    return use.broadcast_to(use.value("fill_value", use.dtype), use.shape)

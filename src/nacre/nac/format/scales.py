"""Scales of quantised tensors: do they fit?"""

from __future__ import annotations

from math import prod

from nacre.nac.format.values import Tensor
from nacre.nac.spec.elements import DTYPES, QUANTIZATIONS, QUANTIZED_DTYPE


def is_scaled(quant: int) -> bool:
    """Whether a quantisation stores integers under scales."""
    layout = QUANTIZATIONS.get(quant)
    return layout is not None and (layout.has_scale or layout.has_axis or layout.has_blocks)


def scale_problem(tensor: Tensor) -> str | None:
    """Why the scales of a tensor do not fit it."""
    layout = QUANTIZATIONS[tensor.quant]
    if not is_scaled(tensor.quant):
        return None
    if tensor.dtype != QUANTIZED_DTYPE:
        return f"its elements are {DTYPES[tensor.dtype]}, expected {DTYPES[QUANTIZED_DTYPE]}"
    count = len(tensor.scales) // 4
    if layout.has_axis:
        if not 0 <= tensor.axis < len(tensor.shape):
            return f"axis {tensor.axis} of a tensor of rank {len(tensor.shape)}"
        size = tensor.shape[tensor.axis]
        return None if count == size else f"{count} scales for {size} places of its axis"
    if layout.has_blocks:
        return _block_problem(tensor, count)
    return None if count == 1 else f"{count} scales, expected one"


def _block_problem(tensor: Tensor, count: int) -> str | None:
    if tensor.block <= 0:
        return f"blocks of {tensor.block} elements"
    if any(dim < 0 for dim in tensor.true_shape):
        return "its own shape has a dimension below 0"
    stored, elements = prod(tensor.shape), prod(tensor.true_shape)
    blocks = -(-elements // tensor.block)
    if stored != blocks * tensor.block:
        return (
            f"{stored:,} elements are stored, {elements:,} in blocks of {tensor.block} need "
            f"{blocks * tensor.block:,}"
        )
    return None if count == blocks else f"{count:,} scales for {blocks:,} blocks"

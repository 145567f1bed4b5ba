"""Scales of quantised tensors: do they fit?"""

from __future__ import annotations

from math import prod

from nacre.nac.format.values import Tensor
from nacre.nac.spec.elements import DTYPE_CODES, DTYPES, QUANTIZATIONS, Quantization


def is_scaled(quant: int) -> bool:
    """Whether a quantisation stores integers under scales."""
    layout = QUANTIZATIONS.get(quant)
    return layout is not None and layout.is_scaled


def scaled_types(quant: int) -> frozenset[int]:
    """The codes of types that a file of a quantisation has under scales.

    Tensors that a quantisation has no place for may be stored in another.
    """
    layout = QUANTIZATIONS.get(quant)
    if layout is None or not layout.is_scaled:
        return frozenset()
    return frozenset({DTYPE_CODES["i8"], DTYPE_CODES[layout.stored]})


def scale_problem(tensor: Tensor) -> str | None:
    """Why the scales of a tensor do not fit it."""
    layout = QUANTIZATIONS[tensor.quant]
    if not layout.is_scaled:
        return None
    if DTYPES[tensor.dtype] != layout.stored:
        return f"its elements are {DTYPES[tensor.dtype]}, expected {layout.stored}"
    count = len(tensor.scales) // layout.scale_bytes
    if layout.has_axis:
        if not 0 <= tensor.axis < len(tensor.shape):
            return f"axis {tensor.axis} of a tensor of rank {len(tensor.shape)}"
        size = tensor.shape[tensor.axis]
        return None if count == size else f"{count} scales for {size} places of its axis"
    if layout.has_blocks:
        return _block_problem(tensor, layout, count)
    return None if count == 1 else f"{count} scales, expected one"


def _block_problem(tensor: Tensor, layout: Quantization, count: int) -> str | None:
    if tensor.block <= 0:
        return f"blocks of {tensor.block} elements"
    if tensor.block % layout.per_byte:
        return f"blocks of {tensor.block} elements, {layout.per_byte} of which share a byte"
    if any(dim < 0 for dim in tensor.true_shape):
        return "its own shape has a dimension below 0"
    stored, elements = layout.per_byte * prod(tensor.shape), prod(tensor.true_shape)
    blocks = -(-elements // tensor.block)
    if stored != blocks * tensor.block:
        return (
            f"{stored:,} elements are stored, {elements:,} in blocks of {tensor.block} need "
            f"{blocks * tensor.block:,}"
        )
    if layout.has_minimums:
        expected = 2 * blocks
        told = f"{count:,} scales and minimums for {blocks:,} blocks, expected {expected:,}"
        return None if count == expected else told
    return None if count == blocks else f"{count:,} scales for {blocks:,} blocks"

"""Fields of a few bits, and scales, out of records of blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Blocks = npt.NDArray[Any]  # a record with named fields a block
Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]


def split_bits(packed: Bytes, width: int) -> Bytes:
    """Each row of bytes `[..., n]` as fields `[..., 8 / width, n]`, the lowest bits first."""
    shifts = np.arange(0, 8, width, dtype=np.uint8)[:, None]
    fields: Bytes = packed[..., None, :] >> shifts & np.uint8((1 << width) - 1)
    return fields


def neighbours(packed: Bytes, width: int) -> Bytes:
    """The same where the fields of a byte follow each other: `[..., n * 8 / width]`."""
    return np.swapaxes(split_bits(packed, width), -1, -2).reshape(*packed.shape[:-1], -1)


def scale(blocks: Blocks, field: str = "d") -> Floats:
    """A scale of f16 or f32 a block, as a column."""
    with np.errstate(invalid="ignore"):  # a NaN that signals becomes one that does not
        column: Floats = blocks[field].astype(np.float32)[:, None]
    return column


def scale_parts(scales: Floats, values: npt.NDArray[Any]) -> Floats:
    """Values times the scale of their part: `[n, parts]` over `[n, elements]`."""
    parts = values.reshape(*scales.shape, -1).astype(np.float32)
    return (scales[..., None] * parts).reshape(len(values), -1)

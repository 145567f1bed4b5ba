"""How an f32 tensor is stored in each quantisation, to the bit as the format's practice does it.

Scales are the largest absolute value over 127, in f32; quotients are rounded to even.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from nacre.core.values import Array
from nacre.nac.format.values import Tensor
from nacre.nac.spec.elements import BLOCK, DTYPE_CODES, QUANTIZED_DTYPE

_LARGEST = 127
_NO_SCALE = np.float32(1e-9)  # in the place of a scale of 0
Recipe = Callable[[int, Array], Tensor]


def fp16(id_: int, array: Array) -> Tensor:
    """Halves. The tensor itself says nothing about it, the header does."""
    with np.errstate(over="ignore"):
        halves = array.astype("<f2")
    return Tensor(id_, DTYPE_CODES["f16"], array.shape, halves.tobytes())


def int8_tensor(id_: int, array: Array) -> Tensor:
    """Integers under one scale."""
    scale = _scales(np.abs(array).max(initial=0), _NO_SCALE)
    return Tensor(id_, QUANTIZED_DTYPE, array.shape, _round(array, scale), 2, _bytes(scale))


def int8_channel(id_: int, array: Array) -> Tensor:
    """Integers, a scale for each place of axis 0; with one axis there is one scale for all."""
    if array.ndim < 2:
        return int8_tensor(id_, array)
    scales = _scales(np.abs(array).max(axis=tuple(range(1, array.ndim)), initial=0), _NO_SCALE)
    along = scales.reshape(-1, *[1] * (array.ndim - 1))
    return Tensor(id_, QUANTIZED_DTYPE, array.shape, _round(array, along), 3, _bytes(scales))


def block_fp8(id_: int, array: Array) -> Tensor:
    """Integers in blocks under a scale each; the last block is filled up with zeros."""
    flat = np.pad(array.reshape(-1), (0, -array.size % BLOCK)).reshape(-1, BLOCK)
    scales = _scales(np.abs(flat).max(axis=1), np.float32(1))
    data = _round(flat, scales[:, None])
    return Tensor(
        id_, QUANTIZED_DTYPE, (flat.size,), data, 4, _bytes(scales),
        block=BLOCK, true_shape=array.shape,
    )  # fmt: skip


# By the code of a quantisation.
RECIPES: Mapping[int, Recipe] = MappingProxyType(
    {1: fp16, 2: int8_tensor, 3: int8_channel, 4: block_fp8}
)


def _scales(largest: Array, without: np.float32) -> Array:
    made = np.asarray(largest, np.float32) / np.float32(_LARGEST)
    return np.where(made == 0, without, made).astype(np.float32)


def _round(array: Array, scale: Array) -> bytes:
    found = np.clip(np.rint(array / scale), -_LARGEST, _LARGEST)
    return found.astype(np.int8).tobytes()


def _bytes(scales: Array) -> bytes:
    return scales.astype("<f4").tobytes()

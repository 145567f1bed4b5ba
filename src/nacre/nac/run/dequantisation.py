"""The elements of weights: as they are stored, and as kernels take them."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.values import Array
from nacre.nac.format.pages import MappedPages, parts_of
from nacre.nac.format.scales import is_scaled
from nacre.nac.format.values import Tensor
from nacre.nac.spec.elements import DTYPES, QUANTIZATIONS


def stored_elements(tensor: Tensor) -> Array:
    """The elements of a tensor as they are stored; not copied."""
    dtype = GRAPH_TYPES[DTYPES[tensor.dtype]].dtype
    if dtype.kind == "b":  # any byte but 0 is true
        found: Array = np.frombuffer(tensor.data, np.uint8).reshape(tensor.shape) != 0
        return found
    little: np.dtype[Any] = dtype.newbyteorder("<") if dtype.kind in "iuf" else dtype
    return np.frombuffer(tensor.data, little).reshape(tensor.shape).astype(dtype, copy=False)


def dequantize(tensor: Tensor) -> Array:
    """The elements of a tensor in the type that the program computes with."""
    if not is_scaled(tensor.quant):
        return stored_elements(tensor)
    has_blocks = QUANTIZATIONS[tensor.quant].has_blocks
    made: Array = np.empty(tensor.true_shape if has_blocks else tensor.shape, np.float32)
    fill_elements(tensor, made)
    return made


def fill_elements(tensor: Tensor, array: Array, pages: MappedPages | None = None) -> None:
    """Give an array the elements of a tensor, part by part, and pages back that were read."""
    elements = stored_elements(tensor)
    # A hostile scale gives infinities, which is what its file says.
    with np.errstate(all="ignore"):
        if QUANTIZATIONS[tensor.quant].has_blocks:
            _fill_blocks(tensor, elements, array, pages)
        else:
            _fill_rows(tensor, np.atleast_1d(elements), np.atleast_1d(array), pages)
    if pages is not None:
        pages.give_back()


def _fill_rows(tensor: Tensor, elements: Array, array: Array, pages: MappedPages | None) -> None:
    scales = _row_scales(tensor, elements.ndim)
    row = elements.itemsize * prod(elements.shape[1:])
    for part in parts_of(len(elements), row):
        array[part] = elements[part]
        if scales is not None:
            array[part] *= scales[part] if len(scales) > 1 else scales
        if pages is not None:
            pages.give_back(part.start * row, part.stop * row)


def _row_scales(tensor: Tensor, rank: int) -> Array | None:
    """The scales in the shape in which rows are multiplied with them."""
    layout = QUANTIZATIONS[tensor.quant]
    if not (layout.has_scale or layout.has_axis):
        return None
    along = [-1 if layout.has_axis and axis == tensor.axis else 1 for axis in range(rank)]
    scales = _scales(tensor) if layout.has_axis else _scales(tensor)[:1]
    return scales.reshape(along)


def _fill_blocks(tensor: Tensor, elements: Array, array: Array, pages: MappedPages | None) -> None:
    flat, size, scales = array.reshape(-1), tensor.block, _scales(tensor)
    blocks = elements.reshape(-1, size)
    whole = flat.size // size  # the last block may be filled up
    rows = flat[: whole * size].reshape(whole, size)
    for part in parts_of(whole, size):
        np.multiply(blocks[part], scales[part, None], out=rows[part])  # no copy of its own
        if pages is not None:
            pages.give_back(part.start * size, part.stop * size)
    rest = flat[whole * size :]
    if rest.size:
        np.multiply(blocks[whole, : rest.size], scales[whole], out=rest)


def _scales(tensor: Tensor) -> Array:
    return np.frombuffer(tensor.scales, "<f4").astype(np.float32, copy=False)

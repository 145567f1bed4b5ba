"""The elements of weights: as they are stored, and as kernels take them."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.values import Array
from nacre.nac.format.pages import MappedPages, mapped_pages, parts_of
from nacre.nac.format.scales import is_scaled
from nacre.nac.format.values import Tensor
from nacre.nac.spec.elements import DTYPES, QUANTIZATIONS, Quantization

_NIBBLE_BITS, _LOW_BITS = 4, 15


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
        if (scales := mapped_pages(tensor.scales)) is not None:
            scales.give_back()


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
    flat, size, layout = array.reshape(-1), tensor.block, QUANTIZATIONS[tensor.quant]
    scales, minimums = _block_figures(tensor)
    stored = size // layout.per_byte  # bytes of a block
    blocks = elements.reshape(-1, stored)
    whole = flat.size // size  # the last block may be filled up
    rows = flat[: whole * size].reshape(whole, size)
    for part in parts_of(whole, size):
        # No copy of its own.
        np.multiply(_integers(blocks[part], layout), scales[part, None], out=rows[part])
        if minimums is not None:
            rows[part] += minimums[part, None]
        if pages is not None:
            pages.give_back(part.start * stored, part.stop * stored)
    rest = flat[whole * size :]
    if rest.size:
        np.multiply(_integers(blocks[whole:], layout)[0, : rest.size], scales[whole], out=rest)
        if minimums is not None:
            rest += minimums[whole]


def _integers(blocks: Array, layout: Quantization) -> Array:
    """What lies under the scales, one to an element."""
    if layout.per_byte == 1:
        return blocks
    return np.stack([blocks & _LOW_BITS, blocks >> _NIBBLE_BITS], axis=-1).reshape(len(blocks), -1)


def _block_figures(tensor: Tensor) -> tuple[Array, Array | None]:
    """Scales of blocks, and what 0 stands for in each where that is not 0."""
    figures = _scales(tensor)
    if not QUANTIZATIONS[tensor.quant].has_minimums:
        return figures, None
    return figures[::2], figures[1::2]


def _scales(tensor: Tensor) -> Array:
    stored = np.dtype(QUANTIZATIONS[tensor.quant].scale).newbyteorder("<")
    return np.frombuffer(tensor.scales, stored).astype(np.float32, copy=False)

"""Parts of tensors as regions of the buffers that hold them."""

from __future__ import annotations

from math import prod

from nacre.compile.partition.layers import Access, element_bytes
from nacre.compile.partition.views import dense, reach
from nacre.compile.program import Affine, Region


def outside(buffer: str, base: int, at: Affine, access: Access, shape: tuple[int, ...]) -> Region:
    """A part of a tensor: plain bytes where it has no gaps."""
    bytes_ = element_bytes(access.elem)
    offset = at.times(bytes_).plus(base)
    close = all(
        n == 1 or s == d for n, s, d in zip(shape, access.strides, dense(shape), strict=True)
    )
    if close:
        return Region(buffer, offset, prod(shape) * bytes_)
    strides = tuple(
        s if n > 1 else d for n, s, d in zip(shape, access.strides, dense(shape), strict=True)
    )
    size = reach(shape, strides) * bytes_
    return Region(buffer, offset, size, access.elem, shape, strides=strides)

"""Regions that are sound in every iteration, told from intervals: nearly all of them are."""

from __future__ import annotations

import math
from typing import TypeGuard

from nacre.base.elements import ELEMENT_TYPES
from nacre.base.term_columns import Interval
from nacre.nem.model.folding import Folded
from nacre.nem.model.program import Region
from nacre.nem.plan.grid import Grid


def is_surely_sound(region: Region, grid: Grid) -> bool:
    """Whether a region lies in its buffer and holds its elements, whatever loop variables are.

    False says nothing: offsets whose intervals are wider than their values are among these.
    """
    buffer, offset = region.buffer, sure_interval(region.offset, grid)
    extent = sure_interval(region.extent, grid)
    if buffer is None or not buffer.size or offset is None or extent is None:
        return False
    if offset[0] < 0 or extent[0] < 1 or offset[1] + extent[1] > buffer.size:
        return False
    return region.type_node is None or _holds_its_elements(region, extent[0])


def sure_interval(value: Folded, grid: Grid) -> Interval | None:
    """The least and the greatest value of an expression; None where it might have none."""
    if value is None or isinstance(value, float | bool):
        return None
    if isinstance(value, int):
        return value, value
    return grid.sure_interval(value)


def _holds_its_elements(region: Region, size: int) -> bool:
    """Whether a shape and strides that are numbers fit so many bytes."""
    element, shape, strides = ELEMENT_TYPES.get(region.elem or ""), region.shape, region.strides
    if region.compression is not None or element is None or shape is None:
        return False
    if not _are_numbers(shape) or min(shape, default=0) < 1:
        return False
    if strides is None:
        return math.prod(shape) * element.bits <= 8 * size
    if not _are_numbers(strides) or len(strides) != len(shape) or min(strides) < 0:
        return False
    last = sum((dim - 1) * stride for dim, stride in zip(shape, strides, strict=True))
    return max(math.prod(shape), last + 1) * element.bits <= 8 * size


def _are_numbers(values: tuple[Folded, ...]) -> TypeGuard[tuple[int, ...]]:
    return all(type(value) is int for value in values)

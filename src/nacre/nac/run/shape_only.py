"""Arrays that stand for tensors without having their elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nacre.core.unsupported import Unsupported
from nacre.core.values import Array


class ShapeOnlyArray(np.ndarray[Any, np.dtype[Any]]):
    """An array of any size that takes no memory: all of its elements are one."""

    elements: Callable[[], Array] | None = None  # where they can be had after all


def shape_only_array(
    dtype: np.dtype[Any],
    shape: Sequence[int],
    elements: Callable[[], Array] | None = None,
    place: Array | None = None,
) -> ShapeOnlyArray:
    """An array of a type, in the memory of another if given; Unsupported where NumPy has none."""
    try:
        one = np.zeros((), dtype) if place is None else place
        array = ShapeOnlyArray(tuple(shape), dtype, one, 0, (0,) * len(shape))
    except ValueError as error:  # more axes, or more elements, than arrays have
        raise Unsupported(str(error)) from None
    array.elements = elements
    return array

"""Memory that kernels fill and read within one call, kept from call to call.

New memory of some size comes from the system page by page, each cleared at its first use: that
takes longer than what is then done with it. A thread has its own.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from threading import local
from typing import Any, TypeVar

import numpy as np

from nacre.kernels.interface.call import Array
from nacre.kernels.interface.shapes import Dims

Views = TypeVar("Views")

_MOST_BYTES = 1 << 21  # what is larger is new in every call, and given back
# What is not written takes no memory; rooms that grow little by little would leave holes behind.
_LEAST_BYTES = 1 << 19


class _Rooms(local):
    """The memory of a thread, by what it is for."""

    def __init__(self) -> None:
        self.by_use: dict[str, Array] = {}
        self.moves = 0  # how often any of it was replaced


_ROOMS = _Rooms()


def scratch(use: str, shape: Dims, dtype: np.dtype[Any]) -> Array:
    """An array of arbitrary values, to be used until the same is asked for again."""
    size = prod(shape) * dtype.itemsize
    if size > _MOST_BYTES:
        return np.empty(shape, dtype)
    room = _ROOMS.by_use.get(use)
    if room is None or room.nbytes < size:
        room = None
        _ROOMS.by_use.pop(use, None)  # given back before there is more
        _ROOMS.moves += 1
        room = _ROOMS.by_use[use] = np.empty(max(size, _LEAST_BYTES), np.uint8)
    return np.ndarray(shape, dtype, room)


def keep_views(
    make: Callable[..., Views], *wanted: tuple[str, Dims, np.dtype[Any]]
) -> Callable[[], Views]:
    """What is made of some scratch arrays: once for a thread, and again where they have moved."""
    kept = local()
    is_kept = all(prod(shape) * dtype.itemsize <= _MOST_BYTES for _, shape, dtype in wanted)

    def views() -> Views:
        found: tuple[int, Views] | None = getattr(kept, "found", None)
        if found is not None and found[0] == _ROOMS.moves:
            return found[1]
        kept.found = found = None  # given back before there is more
        made = make(*(scratch(*one) for one in wanted))
        if is_kept:
            kept.found = _ROOMS.moves, made
        return made

    return views

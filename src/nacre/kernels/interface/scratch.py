"""Memory that kernels fill and read within one call, kept from call to call.

New memory of some size comes from the system page by page, each cleared at its first use: that
takes longer than what is then done with it. A thread has its own.
"""

from __future__ import annotations

from math import prod
from threading import local
from typing import Any

import numpy as np

from nacre.kernels.interface.call import Array
from nacre.kernels.interface.shapes import Dims

_LINE_BYTES = 64  # of the cache: what is read across two lines takes twice as long
_MOST_BYTES = 1 << 21  # what is larger is new in every call, and given back
# What is not written takes no memory; rooms that grow little by little would leave holes behind.
_LEAST_BYTES = 1 << 19


class _Rooms(local):
    """The memory of a thread, by what it is for."""

    def __init__(self) -> None:
        self.by_use: dict[str, Array] = {}


_ROOMS = _Rooms()


def aligned_bytes(count: int) -> Array:
    """New memory that begins where a line of the cache does."""
    room = np.empty(count + _LINE_BYTES, np.uint8)
    first = -room.ctypes.data % _LINE_BYTES
    return room[first : first + count]


def scratch(use: str, shape: Dims, dtype: np.dtype[Any]) -> Array:
    """An array of arbitrary values, to be used until the same is asked for again."""
    size = prod(shape) * dtype.itemsize
    if size > _MOST_BYTES:
        return np.empty(shape, dtype)
    room = _ROOMS.by_use.get(use)
    if room is None or room.nbytes < size:
        room = None
        _ROOMS.by_use.pop(use, None)  # given back before there is more
        room = _ROOMS.by_use[use] = aligned_bytes(max(size, _LEAST_BYTES))
    return np.ndarray(shape, dtype, room)

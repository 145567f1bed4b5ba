"""Bytes that an instance of a task reads or writes."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from nacre.kernels.interface.call import Array
from nacre.kernels.interface.layouts import Bytes, Layout, Mask
from nacre.nem.run.memory.memory import Storage


class Place(NamedTuple):
    """Elements in a buffer, or all bytes from one to another."""

    storage: Storage
    low: int
    high: int
    layout: Layout | None = None  # None: every byte between

    @property
    def bytes(self) -> Bytes:
        """All bytes between, in memory."""
        return self.storage.data[self.low : self.high]

    def array(self) -> Array:
        """The elements, in memory or unpacked."""
        if self.layout is None:
            return self.bytes
        return self.layout.array(self.storage.data, self.low)

    def copy(self) -> Array:
        """The elements beside memory, as far from each other as they are there."""
        held = self.bytes.copy()
        return held if self.layout is None else self.layout.array(held, 0)

    @property
    def mask(self) -> Mask | None:
        """Which of the bytes are meant; None: all of them."""
        if self.layout is None or self.layout.is_dense:
            return None
        return _touched_mask(self.layout)


class Places(NamedTuple):
    """What an instance reads, and what it writes and nothing else."""

    reads: list[Place]
    writes: list[Place]


def elements(storage: Storage, layout: Layout, offset: int) -> Place:
    """The bytes of elements."""
    return Place(storage, offset, offset + layout.span, layout)


@lru_cache(maxsize=256)
def _touched_mask(layout: Layout) -> Mask:
    mask = np.zeros(layout.span, np.bool_)
    layout.put_flags(mask, 0, True)
    return mask

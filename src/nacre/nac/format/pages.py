"""Memory by pages: those of a mapped file are read ahead and given back, results have their own.

What a process frees usually stays with its allocator. Arrays on pages of their own go back to the
system with the last reference to them, and so do pages of a file that nobody looks at: they are
read again where somebody does.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from nacre.core.values import Array

_PART_BYTES = 1 << 20  # that are read, or copied, before others are given back
_OWN_BYTES = 1 << 18  # from which on an array has pages of its own


@dataclass(frozen=True, eq=False)
class MappedPages:
    """The pages of a mapped file that some of its bytes lie on."""

    map: mmap.mmap
    start: int  # bytes of the map
    end: int

    def read_ahead(self) -> None:
        """Ask the system to read them, and make them the process's own, in parts."""
        self._advise("MADV_WILLNEED", self.start, self.end)
        every = np.frombuffer(self.map, np.uint8)[self.start : self.end]
        for at in range(0, every.size, _PART_BYTES):
            # An element of each page; NumPy lets other threads run meanwhile.
            np.maximum.reduce(every[at : at + _PART_BYTES : mmap.PAGESIZE])

    def give_back(self, start: int = 0, end: int | None = None) -> None:
        """Give bytes back to the system, counted from the first."""
        last = self.end if end is None else self.start + end
        self._advise("MADV_DONTNEED", self.start + start, last)

    def _advise(self, word: str, start: int, end: int) -> None:
        advice = getattr(mmap, word, None)  # not every system takes advice
        if advice is None or start >= end:
            return
        first = start - start % mmap.PAGESIZE
        self.map.madvise(advice, first, end - first)


def mapped_pages(data: bytes | memoryview) -> MappedPages | None:
    """The pages that bytes lie on; None where these are of no mapped file."""
    if not isinstance(data, memoryview) or not isinstance(data.obj, mmap.mmap) or not len(data):
        return None
    start = _address(data) - _address(memoryview(data.obj))
    return MappedPages(data.obj, start, start + data.nbytes)


def _address(data: memoryview) -> int:
    return int(np.frombuffer(data, np.uint8, 1).__array_interface__["data"][0])


def empty_array(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """An array of arbitrary values; a large one has pages of its own, which go when it goes."""
    size = prod(shape) * dtype.itemsize
    if size < _OWN_BYTES:
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, mmap.mmap(-1, size))


def parts_of(count: int, item_bytes: int) -> Iterator[slice]:
    """So many items in parts of about a megabyte."""
    step = max(_PART_BYTES // max(item_bytes, 1), 1)
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))

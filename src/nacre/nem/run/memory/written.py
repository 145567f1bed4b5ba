"""Which elements of a buffer have been written: what a layout says of the bytes of a storage."""

from __future__ import annotations

import numpy as np

from nacre.kernels.interface.layouts import Layout, Mask
from nacre.nem.run.memory.memory import Storage, first_false_run


def first_unwritten(layout: Layout, storage: Storage, offset: int) -> tuple[int, int] | None:
    """The first run of bytes of the elements that nobody wrote, counted from the buffer's start."""
    if not storage.missing or layout.holds(storage.written, offset):
        return None
    needed = np.zeros(layout.span, np.bool_)
    layout.put_flags(needed, 0, True)
    return first_false_run(~needed | storage.written[offset : offset + layout.span], offset)


def mark_written(layout: Layout, storage: Storage, offset: int, flags: Mask | bool = True) -> None:
    """The elements have been written, or those of them that a copy had to give."""
    part = storage.written[offset : offset + layout.span]
    before = int(np.count_nonzero(part))
    layout.put_flags(storage.written, offset, flags)
    storage.missing += before - int(np.count_nonzero(part))

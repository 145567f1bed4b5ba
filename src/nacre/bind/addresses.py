"""Physical addresses: where every buffer lies in its memory."""

from __future__ import annotations

from collections.abc import Iterable

from nacre.nem.model.program import Buffer
from nacre.tcb.image import Placement


def place_in_order(buffers: Iterable[Buffer]) -> dict[int, Placement]:
    """Buffers one after the other in the order of their declarations, by their index."""
    ends: dict[str, int] = {}
    found = {}
    for buffer in buffers:
        address = -(-ends.get(buffer.memory, 0) // buffer.align) * buffer.align
        size = buffer.size or 0
        ends[buffer.memory] = address + size
        found[buffer.index] = Placement(buffer.name, buffer.memory, address, size)
    return found

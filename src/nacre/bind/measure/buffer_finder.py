"""Which buffer of a program a physical address lies in."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from nacre.tcb.image import Placement


class BufferFinder:
    """Asks placements, which share no byte."""

    def __init__(self, placements: Iterable[Placement]) -> None:
        ordered = sorted(placements, key=lambda placement: placement.address)
        self._by_memory: dict[str, tuple[list[int], list[str]]] = {}
        for one in ordered:
            starts, names = self._by_memory.setdefault(one.memory, ([], []))
            starts.append(one.address)
            names.append(one.buffer)

    def find(self, memory: str, address: int) -> str | None:
        """The last buffer that begins at an address or before it."""
        starts, names = self._by_memory.get(memory, ([], []))
        at = bisect_right(starts, address) - 1
        return names[at] if at >= 0 else None

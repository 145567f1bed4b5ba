"""Which buffer lies in which banks, in words and as plain values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from nacre.bind.memory.banks import BufferBanks, MemoryBanks
from nacre.bind.task_places import plural
from nacre.nem.run.sessions.tables import align_table

_HEADING = ("Buffer", "Memory", "Banks", "Pushed back")


class BankReport:
    """The banks of a bound program's memories."""

    def __init__(self, memories: Sequence[MemoryBanks]) -> None:
        self._memories = memories

    @property
    def summary(self) -> str | None:
        """In a line; None where nothing was moved."""
        moved = [one for one in self._memories if any(b.pushed for b in one.buffers)]
        if not moved:
            return None
        count = sum(bool(b.pushed) for one in moved for b in one.buffers)
        before = sum(one.packed_conflicts for one in moved)
        after = sum(one.conflicts for one in moved)
        buffers = f"{plural(count, 'buffer')} pushed back"
        return f"{buffers}, {after:,} banks used twice at once, not {before:,}"

    @property
    def sections(self) -> Iterator[str]:
        """The map of banks, and why it is so."""
        if not self._memories:
            return
        rows = [
            (b.buffer, one.memory, _banks_text(b, one.banks), b.pushed)
            for one in self._memories
            for b in one.buffers
        ]
        lines = [
            f"{one.memory}: {one.conflicts:,} banks used twice at once, {one.packed_conflicts:,} "
            f"when packed: {one.reason}"
            for one in self._memories
        ]
        yield "\n".join([f"Banks\n{align_table(_HEADING, rows)}", *lines])

    def as_json(self) -> list[dict[str, Any]]:
        """The same as plain values."""
        return [
            {
                "memory": one.memory, "banks": one.banks, "conflicts": one.conflicts,
                "packed_conflicts": one.packed_conflicts, "because": one.reason,
                "buffers": [
                    {"buffer": b.buffer, "first": b.first, "used": b.used, "pushed": b.pushed}
                    for b in one.buffers
                ],
            }
            for one in self._memories
        ]  # fmt: skip


def _banks_text(buffer: BufferBanks, count: int) -> str:
    """`all`, `3`, `3-6`, or `14-1` of those that begin again from 0."""
    if buffer.used >= count:
        return "all"
    last = (buffer.first + buffer.used - 1) % count
    return str(buffer.first) if buffer.used == 1 else f"{buffer.first}-{last}"

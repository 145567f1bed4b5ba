"""Banks: buffers whose tiles are used at once are moved apart, as far as there is room.

Buffers stay in their order. One is pushed back by less than a round of all banks, to where its
tiles share the fewest with those that lie before it. Packing stays where that is no better.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import lcm

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nacre.base.term_columns import Column
from nacre.bind.memory.bank_uses import TilePair, tiles_used_at_once
from nacre.nem.model.program import Buffer
from nacre.nem.plan.plan import Plan
from nacre.tcb.figures import Figures
from nacre.tcb.image import Machine, Placement

_KEYS = {"L1": ("l1.banks", "l1.interleave"), "L2": ("l2.slices", "l2.interleave")}
_MOST_BANKS = 1024  # among which is chosen
_MOST_AT_ONCE = 1 << 20  # places and tiles that are compared in one go


class Banks(Struct, frozen=True):
    """The banks of a memory: neighbouring pieces of so many bytes lie in them in turn."""

    count: int
    interleave: int

    def used(self, address: Column, size: Column) -> tuple[Column, Column]:
        """The first bank of some bytes, and how many they use."""
        first = address // self.interleave
        last = (address + np.maximum(size, 1) - 1) // self.interleave
        return first % self.count, np.minimum(self.count, last - first + 1)

    def shared(self, a: tuple[Column, Column], b: tuple[Column, Column]) -> Column:
        """How many banks two uses have in common."""
        (p, n), (q, m) = a, b
        apart = (q - p) % self.count
        behind = np.maximum(0, np.minimum(n, apart + m) - apart)
        shared: Column = behind + np.maximum(0, np.minimum(n, apart + m - self.count))
        return shared


class _Meetings(Struct, frozen=True, eq=False):
    """Tiles that are used at once as columns, in the order of the later of their buffers."""

    later: Column  # buffers
    offset: Column
    size: Column
    earlier: Column
    earlier_offset: Column
    earlier_size: Column
    times: Column

    @classmethod
    def of(cls, pairs: Mapping[TilePair, int], buffers: Collection[int]) -> _Meetings:
        """Those of one memory."""
        rows = [
            (b.buffer, b.offset, b.size, a.buffer, a.offset, a.size, times)
            for (a, b), times in pairs.items()
            if a.buffer in buffers and b.buffer in buffers
        ]
        table = np.array(sorted(rows), np.int64).reshape(-1, 7)
        return cls(*table.T)

    def of_buffer(self, buffer: int) -> _Meetings:
        """Those whose later buffer is this one."""
        part = slice(*np.searchsorted(self.later, [buffer, buffer + 1]).tolist())
        columns = (self.later, self.offset, self.size, self.earlier, self.earlier_offset)
        return _Meetings(*(c[part] for c in (*columns, self.earlier_size, self.times)))


class BufferBanks(Struct, frozen=True):
    """The banks of a buffer's largest tile, and how far behind its packed place it lies."""

    buffer: str
    first: int
    used: int
    pushed: int


class MemoryBanks(Struct, frozen=True):
    """Which buffer of a memory lies in which banks, and why; conflicts are banks used twice."""

    memory: str
    banks: int
    buffers: tuple[BufferBanks, ...]
    packed_conflicts: int
    conflicts: int
    reason: str


class BankChoices(Struct, frozen=True, eq=False):
    """Where buffers lie, by their index, and what was chosen for each memory with banks."""

    placements: Mapping[int, Placement]
    memories: tuple[MemoryBanks, ...] = ()


def place_in_banks(
    plan: Plan, machine: Machine, figures: Figures, packed: Mapping[int, Placement]
) -> BankChoices:
    """Buffers in banks; `packed` is how they lie one behind the other, which is what is left."""
    by_memory: dict[str, list[Buffer]] = {}
    for buffer in plan.program.buffers:
        keys = _KEYS.get(str(buffer.level))
        if keys is not None and figures.count(keys[0]):
            by_memory.setdefault(buffer.memory, []).append(buffer)
    placements = dict(packed)
    memories = []
    used = {index for buffers in by_memory.values() if len(buffers) > 1
            for index in (buffer.index for buffer in buffers)}  # fmt: skip
    pairs = tiles_used_at_once(plan, frozenset(used)) if used else {}
    for memory, buffers in by_memory.items():
        count, interleave = map(figures.count, _KEYS[memory.partition("[")[0]])
        room = dict(machine.memories)[memory.partition("[")[0]]
        placer = _BankPlacer(Banks(count, interleave), buffers, pairs, packed, room)
        found, chosen = placer.choose(memory)
        placements |= found
        memories.append(chosen)
    return BankChoices(placements, tuple(memories))


class _BankPlacer:
    """Chooses addresses of one memory's buffers."""

    def __init__(
        self,
        banks: Banks,
        buffers: Sequence[Buffer],
        pairs: Mapping[TilePair, int],
        packed: Mapping[int, Placement],
        room: int,
    ) -> None:
        self._banks, self._buffers, self._room = banks, buffers, room
        self._packed = {b.index: packed[b.index] for b in buffers}
        self._meetings = _Meetings.of(pairs, self._packed)
        self._addresses = np.zeros(max(self._packed) + 1, np.int64)  # by the index of a buffer

    def choose(self, memory: str) -> tuple[dict[int, Placement], MemoryBanks]:
        """The placements of a memory, and what to tell of them."""
        packed = self._conflicts(self._packed)
        found, reason = self._packed, "no two buffers in it are used at once"
        if self._banks.count > _MOST_BANKS:
            reason = f"more than {_MOST_BANKS:,} banks are not looked at"
        elif self._meetings.times.size:
            found, lacked = self._place_apart()
            reason = "as few banks in common as can be, one buffer after the other"
            if self._conflicts(found) >= packed:
                found, reason = self._packed, "packed, since nothing is gained by moving buffers"
            if lacked:
                reason += f"; no room to move {lacked:,} of them"
        buffers = tuple(self._buffer_banks(found))
        left = self._conflicts(found)
        return found, MemoryBanks(memory, self._banks.count, buffers, packed, left, reason)

    def _place_apart(self) -> tuple[dict[int, Placement], int]:
        """Buffers moved apart, and how many stayed where they were for want of room."""
        found: dict[int, Placement] = {}
        left = sum((b.size or 0) + b.align - 1 for b in self._buffers)
        end = lacked = 0
        for buffer in self._buffers:
            left -= (buffer.size or 0) + buffer.align - 1
            meetings = self._meetings.of_buffer(buffer.index)
            starts = self._starts(buffer, meetings, end)
            fits = starts[starts + (buffer.size or 0) + left <= self._room]
            address = int(starts[0])
            costs = self._costs(meetings, starts)
            if fits.size:
                address = int(fits[int(np.argmin(costs[: fits.size]))])
            lacked += int(costs.min() < costs[int(np.flatnonzero(starts == address)[0])])
            self._addresses[buffer.index] = address
            found[buffer.index] = replace(self._packed[buffer.index], address=address)
            end = address + (buffer.size or 0)
        return found, lacked

    def _starts(self, buffer: Buffer, meetings: _Meetings, end: int) -> Column:
        """Where a buffer may begin: at once, or at one of the next boundaries between banks."""
        at = -(-end // buffer.align) * buffer.align
        # It does not matter where a tile lies that fills all banks, or meets one that does.
        most = (self._banks.count - 1) * self._banks.interleave
        if not (np.maximum(meetings.size, meetings.earlier_size) <= most).any():
            return np.array([at], np.int64)
        step = lcm(buffer.align, self._banks.interleave)
        following = (at // step + 1) * step
        rest = following + step * np.arange(self._banks.count - 1, dtype=np.int64)
        return np.concatenate([[at], rest])

    def _costs(self, meetings: _Meetings, starts: Column) -> Column:
        """Banks in common with buffers that lie already, for each place where one may begin."""
        other = self._addresses[meetings.earlier] + meetings.earlier_offset
        costs = np.zeros(starts.size, np.int64)
        step = max(1, _MOST_AT_ONCE // starts.size)
        for first in range(0, meetings.times.size, step):
            part = slice(first, first + step)
            mine = self._banks.used(starts[:, None] + meetings.offset[part], meetings.size[part])
            theirs = self._banks.used(other[part], meetings.earlier_size[part])
            costs += (self._banks.shared(mine, theirs) * meetings.times[part]).sum(axis=1)
        return costs

    def _conflicts(self, placements: Mapping[int, Placement]) -> int:
        """How many banks are used by two tiles at once, each as often as it is."""
        found, banks = self._meetings, self._banks
        at = np.zeros(self._addresses.size, np.int64)
        at[list(placements)] = [placement.address for placement in placements.values()]
        mine = banks.used(at[found.later] + found.offset, found.size)
        other = banks.used(at[found.earlier] + found.earlier_offset, found.earlier_size)
        return int((banks.shared(mine, other) * found.times).sum())

    def _buffer_banks(self, placements: Mapping[int, Placement]) -> Iterator[BufferBanks]:
        """The banks of every buffer's largest tile, or of all of it where it meets no other."""
        met = self._meetings
        columns = ((met.later, met.earlier), (met.size, met.earlier_size),
                   (met.offset, met.earlier_offset))  # fmt: skip
        tiles = zip(*(np.concatenate(both).tolist() for both in columns), strict=True)
        largest: dict[int, tuple[int, int]] = {}
        for buffer, size, offset in tiles:
            largest[buffer] = max(largest.get(buffer, (0, 0)), (size, -offset))
        for buffer in self._buffers:
            place, packed = placements[buffer.index], self._packed[buffer.index]
            size, offset = largest.get(buffer.index, (buffer.size or 1, 0))
            at = np.array(place.address - offset)
            first, used = self._banks.used(at, np.array(size))
            pushed = place.address - packed.address
            yield BufferBanks(buffer.name, int(first), int(used), pushed)

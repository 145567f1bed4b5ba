"""Banks of L1 and slices of L2: which buffers lie there, who uses them, who has to wait."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from nacre.base.term_columns import Column
from nacre.bind.measure.buffer_finder import BufferFinder
from nacre.bind.measure.memory_touches import MemoryTouches, memory_touches
from nacre.tcb.figures import Figures
from nacre.tcb.image import STREAM, Image, Operand, Placement
from nacre.tcb.machine.hardware import MOST_BANKS, BankKind, bank_kinds
from nacre.tcb.machine.timing import ImageTiming

NONE = -1
_MEMORIES = 2  # an engine's L1, and L2


class BankTotal(Struct, frozen=True):
    """A bank, or a group of neighbours, over the whole run."""

    first: int
    last: int
    bytes: int  # of buffers that lie in it
    buffers: int
    uses: int  # tasks
    busy: int  # cycles of its ports that they need
    conflicts: int  # tasks that found all of its ports in use
    lost: int  # cycles by which tasks ran longer; several that were as slow share them


class PlacedBuffer(Struct, frozen=True):
    """Where a buffer lies, and from when to when tasks use it; None: never."""

    buffer: str
    address: int
    bytes: int
    first: int | None
    last: int | None
    banks: tuple[int, int, int]  # the first, the last, and how many it lies in


class BankMap(Struct, frozen=True, eq=False):
    """One memory."""

    memory: str
    capacity: int
    kind: BankKind  # `banks` 0: accesses never meet
    buffers: tuple[PlacedBuffer, ...]
    banks: tuple[BankTotal, ...]
    lost: int  # cycles by which tasks ran longer because of it
    touches: MemoryTouches

    @property
    def figures(self) -> dict[str, Any]:
        """The memory without what lies in it."""
        return {
            "memory": self.memory,
            "capacity": self.capacity,
            "interleave": self.kind.interleave,
            "width": self.kind.width,
            "ports": self.kind.ports,
            "lost": self.lost,
        }


def bank_maps(timing: ImageTiming) -> tuple[BankMap, ...]:
    """Every memory on the chip in which something lies: L2, then the L1 of each engine."""
    image = timing.instances.image
    kinds = bank_kinds(Figures(dict(image.machine.figures)))
    memories = _memories(image)
    lives, uses, touches = _lives(timing), _BankUses(timing, kinds), memory_touches(timing)
    return tuple(
        _bank_map(image, memory, kinds[int(memory == "L2")], lives, uses, touches[memory])
        for memory in memories
    )


def _memories(image: Image) -> list[str]:
    found = {placement.memory for placement in image.placements} - {"DDR"}
    return sorted(found, key=lambda memory: (memory != "L2", _engine(memory)))


def _engine(memory: str) -> int:
    return int(memory[3:-1]) if memory.startswith("L1[") else 0


def _bank_map(
    image: Image,
    memory: str,
    kind: BankKind,
    lives: dict[str, tuple[int, int]],
    uses: _BankUses,
    touches: MemoryTouches,
) -> BankMap:
    placed = [placement for placement in image.placements if placement.memory == memory]
    buffers = []
    for one in placed:
        first, last = lives.get(one.buffer, (None, None))
        banks = _banks_of(one, kind)
        buffers.append(PlacedBuffer(one.buffer, one.address, one.size, first, last, banks))
    home = uses.home(memory, image.machine.engines)
    totals = []
    for index, group in enumerate(_groups(kind)):
        sizes = [_bytes_in(one, kind, group) for one in placed]
        held = (sum(sizes), sum(1 for size in sizes if size))
        totals.append(BankTotal(*group, *held, *uses.totals(home + index)))
    level = "L2" if memory == "L2" else "L1"
    return BankMap(
        memory,
        dict(image.machine.memories)[level],
        kind,
        tuple(buffers),
        tuple(totals),
        uses.lost(home, len(totals)),
        touches,
    )


def _banks_of(placement: Placement, kind: BankKind) -> tuple[int, int, int]:
    """The first, the last, and how many: after the last bank comes the first one again."""
    if not kind.banks or not placement.size:
        return NONE, NONE, 0
    first = placement.address // kind.interleave
    last = (placement.address + placement.size - 1) // kind.interleave
    return first % kind.banks, last % kind.banks, min(kind.banks, last - first + 1)


def _groups(kind: BankKind) -> list[tuple[int, int]]:
    """Banks as the machine looks at them: one by one, or neighbours together."""
    seen = min(kind.banks, MOST_BANKS)
    firsts = [-(-group * kind.banks // seen) for group in range(seen)] + [kind.banks]
    return [(first, end - 1) for first, end in pairwise(firsts)]


def _bytes_in(placement: Placement, kind: BankKind, group: tuple[int, int]) -> int:
    """How many bytes of a buffer lie in some banks."""
    end = placement.address + placement.size
    return _bytes_before(end, kind, group) - _bytes_before(placement.address, kind, group)


def _bytes_before(address: int, kind: BankKind, group: tuple[int, int]) -> int:
    turn = kind.interleave * kind.banks
    each = (group[1] - group[0] + 1) * kind.interleave
    rest = address % turn - group[0] * kind.interleave
    return address // turn * each + max(0, min(rest, each))


def _lives(timing: ImageTiming) -> dict[str, tuple[int, int]]:
    """When buffers are in use: from their first touch to their last; the host fills what is read.

    Whatever of an operand lies in a buffer touches it, in every iteration.
    """
    instances = timing.instances
    finder = BufferFinder(instances.image.placements)
    lives: dict[str, tuple[int, int]] = {}
    written: set[str] = set()
    for placed, rows in zip(instances.blocks, instances.numbers, strict=True):
        started = rows[timing.start[rows] >= 0] if rows.size else rows
        if placed.block.kind != "task" or not started.size:
            continue
        span = int(timing.start[started].min()), int(timing.end[started].max())
        for is_output, operand in _operands(placed.block.inputs, placed.block.outputs):
            address = int(placed.grid.column(operand.address)[0])
            buffer = finder.find(operand.memory, address)
            if buffer is not None:
                before = lives.get(buffer, span)
                lives[buffer] = min(before[0], span[0]), max(before[1], span[1])
                written |= {buffer} if is_output else set()
    return {name: (first if name in written else 0, last) for name, (first, last) in lives.items()}


def _operands(
    inputs: tuple[Operand | None, ...], outputs: tuple[Operand, ...]
) -> Iterator[tuple[bool, Operand]]:
    """Operands that lie in a memory, and whether they are written."""
    for is_output, operands in ((False, inputs), (True, outputs)):
        yield from ((is_output, o) for o in operands if o is not None and o.memory != STREAM)


class _BankUses:
    """Who used each bank, and who had to wait there, from the columns of a timed run."""

    def __init__(self, timing: ImageTiming, kinds: tuple[BankKind, BankKind]) -> None:
        columns = timing.columns
        self._timing = timing
        self._l1_banks = min(kinds[0].banks, MOST_BANKS)
        total = len(columns.bank_users)
        self._uses, self._busy, self._conflicts = (np.zeros(total, np.int64) for _ in range(3))
        self._needed: dict[int, tuple[Column, Column]] = {}  # by bank: users, and their cycles
        has_run = np.flatnonzero(timing.start >= 0)
        # In the order in which they started; of those of one time in the order of the program.
        order = has_run[np.argsort(timing.start[has_run], kind="stable")]
        for memory in range(_MEMORIES):
            self._add_memory(order, memory, kinds[memory])
        self._shares = self._share_lost(np.asarray(columns.bank_wait, np.int64))

    def _add_memory(self, order: Column, memory: int, kind: BankKind) -> None:
        columns, mine = self._timing.columns, slice(memory, None, _MEMORIES)
        first = np.asarray(columns.bank_first, np.int64)[mine][order]
        bits = np.asarray(columns.bank_set, np.int64)[mine][order]
        cycles = np.asarray(columns.bank_cycles, np.int64)[mine][order]
        for bank in range(min(kind.banks, MOST_BANKS)):
            uses = (bits >> bank) & 1 == 1
            for home in np.unique(first[uses]).tolist():
                chosen = uses & (first == home)
                self._add(home + bank, order[chosen], cycles[chosen], kind)

    def _add(self, bank: int, users: Column, cycles: Column, kind: BankKind) -> None:
        ends = np.sort(self._timing.end[users])
        over = np.searchsorted(ends, self._timing.start[users], side="right")
        together = np.maximum(1, np.arange(1, users.size + 1) - over)
        self._uses[bank] = users.size
        self._busy[bank] = cycles.sum()
        self._conflicts[bank] = np.count_nonzero(together > kind.ports)
        self._needed[bank] = users, cycles * -(-together // kind.ports)

    def _share_lost(self, waits: Column) -> npt.NDArray[np.float64]:
        """Cycles lost by bank: those of a task go to the banks that took it longest, in parts."""
        most, banks = np.zeros(waits.size, np.int64), np.zeros(waits.size, np.int64)
        for users, needed in self._needed.values():
            most[users] = np.maximum(most[users], needed)
        for users, needed in self._needed.values():
            banks[users] += needed == most[users]
        shares = np.zeros(self._uses.size)
        for bank, (users, needed) in self._needed.items():
            slowest = users[needed == most[users]]
            shares[bank] = (waits[slowest] / banks[slowest]).sum()
        return shares

    def home(self, memory: str, engines: int) -> int:
        """The number of the first bank of a memory."""
        return self._l1_banks * (engines if memory == "L2" else _engine(memory))

    def totals(self, bank: int) -> tuple[int, int, int, int]:
        """Uses, cycles, conflicts and cycles lost."""
        lost = round(float(self._shares[bank]))
        return int(self._uses[bank]), int(self._busy[bank]), int(self._conflicts[bank]), lost

    def lost(self, home: int, banks: int) -> int:
        """Cycles lost in a memory."""
        return round(float(self._shares[home : home + banks].sum()))

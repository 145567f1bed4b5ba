"""Memories as byte arrays, which of their bytes have been written, and the buffers in them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from weakref import WeakMethod

import numpy as np

from nacre.base.diagnostics import InputError
from nacre.kernels.interface.layouts import Bytes, Mask
from nacre.nem.model.devices import Device
from nacre.nem.model.program import Buffer, Operand, Program
from nacre.nem.run.memory.host_span import HOST
from nacre.nem.spec.limits import DEFAULT_L1_BYTES, DEFAULT_L2_BYTES
from nacre.nem.spec.rules.running import RUN05

# What a byte that nobody wrote reads as: NaN in every float type, -1 in every signed one.
POISON = 0xFF


@dataclass(frozen=True, slots=True)
class Allocation:
    """Where a buffer lies in its memory."""

    name: str
    offset: int
    size: int
    align: int


Guard = Callable[[int, int], None]


@dataclass(eq=False)
class MemoryLevel:
    """DDR, L2 or the L1 of an engine. The operating system commits pages when they are touched."""

    name: str
    size: int
    poison: bool = True  # bytes that nobody wrote are told apart; else they are zeros
    data: Bytes = field(init=False, repr=False)
    written: Mask = field(init=False, repr=False)
    allocations: list[Allocation] = field(default_factory=list)
    # Runs that may refuse what the host writes, by the first and the last byte; while they live.
    guards: list[WeakMethod[Guard]] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self.data = np.zeros(self.size, np.uint8)
        self.written = np.zeros(self.size, np.bool_)

    @property
    def allocated(self) -> int:
        """Bytes up to the end of the last buffer, the gaps that alignments ask for included."""
        return max((a.offset + a.size for a in self.allocations), default=0)

    def allocate(self, size: int, align: int = 1, name: str = "") -> int:
        """The offset of the next free bytes, one after the other in the order of the calls."""
        align = max(align, 1)  # an alignment that is none, and was allowed through, asks nothing
        offset = -(-self.allocated // align) * align
        self.allocations.append(Allocation(name, offset, size, align))
        return offset

    def contains(self, offset: int, size: int) -> bool:
        """Whether so many bytes from an offset on lie inside."""
        return min(offset, size) >= 0 and offset + size <= self.size

    def copy(self) -> MemoryLevel:
        """Another memory with the same bytes, as far as buffers reach."""
        made = MemoryLevel(self.name, self.size, self.poison)
        end = self.allocated
        made.data[:end], made.written[:end] = self.data[:end], self.written[:end]
        return made

    def read(self, offset: int, length: int) -> bytes:
        """Bytes; those that nobody wrote read as poison, or as 0 where that is not kept."""
        if not self.contains(offset, length):
            raise IndexError(f"{self.name} has {self.size} bytes")
        part = slice(offset, offset + length)
        if not self.poison:
            return self.data[part].tobytes()
        return np.where(self.written[part], self.data[part], POISON).astype(np.uint8).tobytes()

    def add_guard(self, refuse: Guard) -> None:
        """Ask a method before the host writes, as long as its object lives."""
        self.guards = [guard for guard in self.guards if guard() is not None]
        self.guards.append(WeakMethod(refuse))

    def write(self, offset: int, data: bytes | bytearray | memoryview | Bytes) -> None:
        """Put bytes, which then count as written."""
        raw = np.frombuffer(data, np.uint8)
        if not self.contains(offset, raw.size):
            raise IndexError(f"{self.name} has {self.size} bytes")
        for guard in self.guards:
            if (refuse := guard()) is not None:
                refuse(offset, offset + raw.size)
        self.data[offset : offset + raw.size] = raw
        self.written[offset : offset + raw.size] = True


class Storage:
    """The bytes of one buffer, and how many of them nobody has written yet."""

    __slots__ = ("base", "buffer", "data", "missing", "poison", "written")

    def __init__(self, buffer: Buffer, level: MemoryLevel, base: int) -> None:
        size = buffer_bytes(buffer)
        self.buffer = buffer
        self.base = base
        self.poison = level.poison
        self.data: Bytes = level.data[base : base + size]
        self.written: Mask = level.written[base : base + size]
        # Zero where everything is written: the one thing that the hot path asks.
        self.missing = size - int(np.count_nonzero(self.written)) if level.poison else 0
        if self.missing == size:
            self.data.fill(POISON)
        elif self.missing:
            self.data[~self.written] = POISON

    def first_gap(self, low: int, high: int) -> tuple[int, int] | None:
        """The first run of bytes in a range that nobody wrote."""
        if not self.missing:
            return None
        return first_false_run(self.written[low:high], low)

    def mark_written(self, low: int, high: int) -> None:
        """A range has been written."""
        if self.missing:
            part = self.written[low:high]
            self.missing -= high - low - int(np.count_nonzero(part))
            part[:] = True

    def forget(self, low: int, high: int) -> None:
        """A range holds nothing any more: it reads as poison, where that is kept."""
        if self.poison:
            part = self.written[low:high]
            self.missing += int(np.count_nonzero(part))
            part[:] = False
            self.data[low:high] = POISON

    def mark_copied(self, low: int, source: Storage, source_low: int, size: int) -> None:
        """A range has been copied from another buffer: poison travels along."""
        if not source.missing:
            self.mark_written(low, low + size)
            return
        came = source.written[source_low : source_low + size].copy()
        part = self.written[low : low + size]
        self.missing += int(np.count_nonzero(part)) - int(np.count_nonzero(came))
        part[:] = came


def first_false_run(mask: Mask, start: int = 0) -> tuple[int, int] | None:
    """The first run of False in a mask, as a range counted from `start`."""
    if mask.all():
        return None
    low = int(np.argmin(mask))
    rest = mask[low:]
    length = int(np.argmax(rest)) if rest.any() else rest.size
    return start + low, start + low + length


@dataclass(frozen=True, slots=True)
class MemorySizes:
    """How large the memories of a machine are."""

    ddr: int
    l2: int
    l1: int  # of each engine
    engines: int

    @property
    def by_memory(self) -> dict[str, int]:
        """The memories of a session by name, without DDR."""
        return {"L2": self.l2, **{f"L1[{k}]": self.l1 for k in range(self.engines)}}


def memory_sizes(device: Device, ddr_size_bytes: int) -> MemorySizes:
    """What a device has; where a figure is missing, the default."""
    topology = device.topology
    l2 = topology.l2_size_bytes if topology is not None else None
    l1 = topology.l1_size_bytes if topology is not None else None
    return MemorySizes(
        ddr_size_bytes, l2 or DEFAULT_L2_BYTES, l1 or DEFAULT_L1_BYTES, device.num_engines
    )


class Memory:
    """The memories of a session: its own L2 and L1, and the DDR that it was given."""

    def __init__(
        self,
        program: Program,
        sizes: MemorySizes,
        ddr: MemoryLevel,
        streamed: Iterable[Operand] = (),
    ) -> None:
        """`streamed` are operands whose values pass from task to task, and never lie here."""
        self.levels: dict[str, MemoryLevel] = {"DDR": ddr}
        for name, size in sizes.by_memory.items():
            self.levels[name] = MemoryLevel(name, size, ddr.poison)
        self.buffers = {buffer.name: buffer for buffer in program.buffers}
        self._bases = place_buffers(program.buffers, self.levels)
        self._storages: dict[int, Storage] = {}
        self._streams: dict[int, Storage] = {}  # by buffer: where its streamed values are meanwhile
        self._streamed = {id(operand) for operand in streamed}
        self._is_open = True

    def storage(self, buffer: Buffer) -> Storage:
        """The bytes of a buffer, made ready when they are first asked for."""
        storage = self._storages.get(buffer.index)
        if storage is None:
            self.require_open()
            level, base = self.levels[buffer.memory], self.base(buffer)
            storage = Storage(buffer, level, base)
            self._storages[buffer.index] = storage
        return storage

    def is_streamed(self, operand: Operand) -> bool:
        """Whether an operand's value is never written to memory."""
        return id(operand) in self._streamed

    def storage_of(self, operand: Operand, buffer: Buffer) -> Storage:
        """The bytes that an operand in a buffer touches: the buffer's, or those of its stream."""
        if not self.is_streamed(operand):
            return self.storage(buffer)
        stream = self._streams.get(buffer.index)
        if stream is None:
            level = MemoryLevel(buffer.memory, buffer_bytes(buffer), self.storage(buffer).poison)
            stream = self._streams[buffer.index] = Storage(buffer, level, 0)
        return stream

    def release(self) -> None:
        """Let go of everything but DDR."""
        self._storages.clear()
        self._streams.clear()
        self.levels = {"DDR": self.levels["DDR"]}
        self._is_open = False

    @property
    def is_open(self) -> bool:
        """Whether there are bytes to look at: not after `release`."""
        return self._is_open

    def require_open(self) -> None:
        """Raise InputError after `release`."""
        if not self._is_open:
            message = "the session is closed, its memories are gone"
            raise InputError([RUN05.at(HOST, message)])

    def base(self, buffer: Buffer) -> int:
        """Where a buffer starts in its memory."""
        return self._bases[buffer.index]


def place_buffers(buffers: Iterable[Buffer], levels: dict[str, MemoryLevel]) -> dict[int, int]:
    """Give every buffer its place, one after the other in the order of their declarations.

    ValueError for one whose memory the machine lacks; the check has reported it.
    """
    for level in levels.values():
        level.allocations.clear()
    bases = {}
    for buffer in buffers:
        if buffer.memory not in levels:
            raise ValueError(f"buffer `{buffer.name}` lies in no memory of the device")
        home = levels[buffer.memory]
        bases[buffer.index] = home.allocate(buffer_bytes(buffer), buffer.align, buffer.name)
    return bases


def buffer_bytes(buffer: Buffer) -> int:
    """The bytes that a buffer takes; none where its size is wrong, which has been reported."""
    return max(buffer.size or 0, 0)


def host_memory_bytes() -> int | None:
    """How much memory this machine has; None where it does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None

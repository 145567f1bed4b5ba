"""Memory over time: which buffers are alive, and how many bytes that takes in each memory."""

from __future__ import annotations

from dataclasses import dataclass

from nacre.base.term_columns import Column
from nacre.nem.model.devices import Device
from nacre.nem.model.program import Buffer
from nacre.nem.run.timing.counters import Lifetime, lifetimes, memory_counters
from nacre.nem.run.timing.timeline import Timeline


@dataclass(frozen=True, eq=False)
class Occupancy:
    """A memory: its buffers, and the bytes that are alive from each time to the next."""

    place: str  # DDR, L2, L1[k]
    capacity: int | None
    buffers: tuple[Lifetime, ...]
    times: Column
    alive: Column

    @property
    def peak(self) -> int:
        """The most bytes that are alive at once."""
        return int(self.alive.max(initial=0))


def occupancy(timeline: Timeline) -> list[Occupancy]:
    """Every memory that holds a buffer in use, from the outside in."""
    lives = lifetimes(timeline)
    counters = {c.name.removesuffix(" bytes"): c for c in memory_counters(timeline)}
    buffers = {life.buffer.memory: life.buffer for life in lives}
    return [
        Occupancy(
            place,
            capacity(timeline.device, buffers[place]),
            tuple(life for life in lives if life.buffer.memory == place),
            counters[place].time,
            counters[place].value,
        )
        for place in sorted(buffers, key=lambda place: _rank(buffers[place]))
    ]


def _rank(buffer: Buffer) -> tuple[int, int]:
    return ("DDR", "L2", "L1").index(str(buffer.level)), buffer.engine or 0


def capacity(device: Device, buffer: Buffer) -> int | None:
    """The bytes that a buffer's memory has; DDR's size is no figure of a device."""
    if device.topology is None or buffer.level == "DDR":
        return None
    if buffer.level == "L2":
        return device.topology.l2_size_bytes
    return device.topology.l1_size_bytes

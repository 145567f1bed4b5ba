"""Memory over time: which buffers are alive, and how many bytes that takes in each memory.

A buffer lives from its first touch to its last. One that is only read was filled by the host
before the run, so it lives from the start.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from nacre.nem.model.devices import Device
from nacre.nem.model.program import Buffer
from nacre.nem.plan.terms import Column
from nacre.nem.run.timing.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A buffer from its first touch to its last."""

    name: str
    size: int
    first: int
    last: int
    is_from_host: bool


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
    """Every memory that holds a buffer, from the outside in."""
    by_place: dict[str, list[Lifetime]] = defaultdict(list)
    buffer_at: dict[str, Buffer] = {}
    for buffer, lifetime in _lifetimes(timeline):
        by_place[buffer.place].append(lifetime)
        buffer_at[buffer.place] = buffer
    rank = {"DDR": 0, "L2": 1, "L1": 2}
    places = sorted(by_place, key=lambda p: (rank[str(buffer_at[p].level)], buffer_at[p].engine))
    return [
        _occupancy(place, _capacity(timeline.device, buffer_at[place]), by_place[place])
        for place in places
    ]


def _lifetimes(timeline: Timeline) -> list[tuple[Buffer, Lifetime]]:
    """The buffers that tasks touched, in the order of declarations."""
    touched: dict[int, tuple[Buffer, int, int, bool]] = {}
    for task in timeline.steps.plan.program.tasks:
        rows = timeline.steps.numbers.get(task.position, np.zeros(0, np.int64))
        rows = rows[timeline.start[rows] >= 0]
        if not rows.size:
            continue
        low, high = int(timeline.start[rows].min()), int(timeline.end[rows].max())
        for operand in task.operands:
            buffer = operand.region.buffer if operand.region is not None else None
            if buffer is None:
                continue
            is_read = operand.access == "read"
            _, first, last, only_read = touched.get(buffer.index, (buffer, low, high, True))
            only_read = only_read and is_read
            touched[buffer.index] = (buffer, min(first, low), max(last, high), only_read)
    return [
        (buffer, Lifetime(buffer.name, buffer.size or 0, 0 if host else first, last, host))
        for _, (buffer, first, last, host) in sorted(touched.items())
    ]


def _occupancy(place: str, capacity: int | None, buffers: list[Lifetime]) -> Occupancy:
    changes: dict[int, int] = defaultdict(int)
    for lifetime in buffers:
        changes[lifetime.first] += lifetime.size
        changes[lifetime.last] -= lifetime.size
    times = np.array(sorted(changes), np.int64)
    alive = np.cumsum(np.array([changes[t] for t in sorted(changes)], np.int64))
    return Occupancy(place, capacity, tuple(buffers), times, alive)


def _capacity(device: Device, buffer: Buffer) -> int | None:
    """The bytes that a memory has; DDR's size is no figure of a device."""
    if device.topology is None or buffer.level == "DDR":
        return None
    if buffer.level == "L2":
        return device.topology.l2_size_bytes
    return device.topology.l1_size_bytes

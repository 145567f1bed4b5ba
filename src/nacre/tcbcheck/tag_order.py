"""What the tags of an image order: a run in program order, and a clock for every instance.

A tag is an event list: its n-th event has brought it to some count. Where the events of every tag
are ordered one after the other, a wait for a count means one event and all before it, and a clock
over tags says what is before an instance: for each tag, the count that it has reached.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Protocol

from msgspec import Struct

from nacre.nem.plan.clocks import Clock
from nacre.tcbcheck.instances import Instances, TagNumbers

NOTHING = Clock()


class Stuck(Struct, frozen=True):
    """An instance whose wait does not hold when everything before it is over."""

    instance: int
    tag: int
    value: int
    count: int


class Unordered(Struct, frozen=True):
    """Two events of one tag that may happen in either order."""

    first: int
    second: int
    tag: int


class Ordering(Protocol):
    """What is before what."""

    @property
    def signalled(self) -> list[tuple[int, int]]:
        """The tag of an instance and its count then; (-1, 0): none."""

    def before(self, first: int, second: int) -> bool:
        """Whether an instance is complete before another starts."""


@dataclass(frozen=True, eq=False)
class TagOrder:
    """What is before every instance, as far as waits are exact."""

    clocks: list[Clock]
    signalled: list[tuple[int, int]]  # the tag of an instance and its count then; (-1, 0): none
    stuck: tuple[Stuck, ...]
    unordered: tuple[Unordered, ...]

    def before(self, first: int, second: int) -> bool:
        """Whether an instance is complete before another starts, where all events are ordered."""
        tag, count = self.signalled[first]
        return tag >= 0 and self.clocks[second].index(tag) >= count


class _TagEvents:
    """The events of one tag so far."""

    __slots__ = ("counts", "instances")

    def __init__(self) -> None:
        self.counts: list[int] = []  # after each event
        self.instances: list[int] = []

    @property
    def count(self) -> int:
        return self.counts[-1] if self.counts else 0


def order_by_tags(instances: Instances, tags: TagNumbers) -> TagOrder:
    """Run an image in program order, tags alone."""
    return _Runner(instances, tags).run()


class _Runner:
    def __init__(self, instances: Instances, tags: TagNumbers) -> None:
        self._instances = instances
        self._waits = wait_columns(instances, tags)
        self._signals = signal_columns(instances, tags)
        self._raises = raise_columns(instances, tags)
        self._events = [_TagEvents() for _ in range(tags.count)]
        self._after: list[Clock] = []  # the clock of an instance with its own events
        self._order = TagOrder([], [], (), ())
        self._stuck: list[Stuck] = []
        self._unordered: list[Unordered] = []

    def run(self) -> TagOrder:
        """Instance by instance."""
        owners, rows = self._instances.block.tolist(), self._instances.row.tolist()
        for number, (owner, row) in enumerate(zip(owners, rows, strict=True)):
            clock = self._clock(number, owner, row)
            self._order.clocks.append(clock)
            self._complete(number, owner, row, clock)
        found = self._order
        return TagOrder(found.clocks, found.signalled, tuple(self._stuck), tuple(self._unordered))

    def _clock(self, number: int, owner: int, row: int) -> Clock:
        # A chain runs as one: what its first block waits for is before all of it.
        head = self._instances.streams_from(owner, row)
        clock = NOTHING if head is None else self._order.clocks[head]
        for tags, values in self._waits[owner]:
            tag, value = tags[row], values[row]
            events = self._events[tag]
            if value <= 0:
                continue
            if events.count < value:
                self._stuck.append(Stuck(number, tag, value, events.count))
                continue
            at = events.instances[bisect_left(events.counts, value)]
            before = self._after[at]
            clock = before if clock is NOTHING else clock.join(before)
        return clock

    def _complete(self, number: int, owner: int, row: int, clock: Clock) -> None:
        after = clock
        for tags, count, values in self._raises[owner]:
            for tag in range(tags[row], tags[row] + count):
                events = self._events[tag]
                if values[row] > events.count:
                    after = self._event(number, tag, values[row], clock, after)
                elif values[row] > max(0, clock.index(tag)):  # it would be a rise if it came early
                    self._unordered.append(Unordered(events.instances[-1], number, tag))
        signalled = (-1, 0)
        signal = self._signals[owner]
        if signal is not None:
            tag = signal[row]
            count = self._events[tag].count + 1
            after = self._event(number, tag, count, clock, after)
            signalled = (tag, count)
        self._order.signalled.append(signalled)
        self._after.append(after)
        head = self._instances.streams_from(owner, row)
        while head is not None:  # it is over when the last of its chain is
            self._order.signalled[head] = signalled
            at = int(self._instances.block[head]), int(self._instances.row[head])
            head = self._instances.streams_from(*at)

    def _event(self, number: int, tag: int, count: int, clock: Clock, after: Clock) -> Clock:
        """An instance brings a tag to a count; the event before must be over by then."""
        events = self._events[tag]
        if events.counts and clock.index(tag) < events.count:
            self._unordered.append(Unordered(events.instances[-1], number, tag))
        events.counts.append(count)
        events.instances.append(number)
        return after.with_index(tag, count)


_Lists = tuple[list[int], list[int]]


def wait_columns(instances: Instances, tags: TagNumbers) -> list[list[_Lists]]:
    """The tags and values that the instances of every block wait for."""
    return [
        [
            (tags.column(wait.tag, found).tolist(), found.column(wait.value).tolist())
            for wait in found.block.waits
        ]
        for found in instances.blocks
    ]


def signal_columns(instances: Instances, tags: TagNumbers) -> list[list[int] | None]:
    """The tag that the instances of every block signal."""
    return [
        None if found.block.signal is None else tags.column(found.block.signal, found).tolist()
        for found in instances.blocks
    ]


def raise_columns(
    instances: Instances, tags: TagNumbers
) -> list[list[tuple[list[int], int, list[int]]]]:
    """The tags that the instances of every block raise: the first, how many, and to what."""
    return [
        [
            (
                tags.column(raised.tag, found).tolist(),
                raised.count,
                found.column(raised.value).tolist(),
            )
            for raised in found.block.sets
        ]
        for found in instances.blocks
    ]

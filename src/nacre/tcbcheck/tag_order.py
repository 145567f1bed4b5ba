"""What the tags of an image order: a run in program order, and a clock for every instance.

A tag is an event list: its n-th event has brought it to some count. Where the events of every tag
are ordered one after the other, a wait for a count means one event and all before it, and a clock
over tags says what is before an instance: for each tag, the count that it has reached.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from nacre.base.term_columns import Column
from nacre.nem.plan.clocks import Clock
from nacre.tcb.machine.instances import Instances, Lists

Mask = npt.NDArray[np.bool_]

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

    def columns(self, firsts: Column) -> BeforeColumns:
        """The same for many instances at a time."""


class BeforeColumns(Protocol):
    """Which of some instances are before another."""

    def before(self, second: int, rows: slice) -> Mask:
        """Those among some rows that are complete before another instance starts."""


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

    def columns(self, firsts: Column) -> BeforeColumns:
        """The same for many instances at a time."""
        return _TagColumns(self, firsts)


class _TagColumns:
    """What every tag has reached before an instance, kept up from one that is asked for to another.

    Those behind each other in a program have clocks that differ little.
    """

    def __init__(self, order: TagOrder, firsts: Column) -> None:
        self._clocks = order.clocks
        signalled = np.array(order.signalled, np.int64).reshape(-1, 2)[firsts]
        self._tags, self._counts = signalled.T
        # What signals no tag has that of the last place, which reaches nothing.
        self._reached = np.full(int(self._tags.max(initial=-1)) + 2, -1)
        self._clock = NOTHING

    def before(self, second: int, rows: slice) -> Mask:
        """Those among some rows that are complete before another instance starts."""
        clock, reached = self._clocks[second], self._reached
        last = len(reached) - 1
        for tag, count in clock.changes_since(self._clock):
            if tag < last:
                reached[tag] = count
        self._clock = clock
        found: Mask = reached[self._tags[rows]] >= self._counts[rows]
        return found


class _TagEvents:
    """The events of one tag so far."""

    __slots__ = ("counts", "instances")

    def __init__(self) -> None:
        self.counts: list[int] = []  # after each event
        self.instances: list[int] = []

    @property
    def count(self) -> int:
        return self.counts[-1] if self.counts else 0


def order_by_tags(instances: Instances) -> TagOrder:
    """Run an image in program order, tags alone."""
    return _Runner(instances).run()


class _Runner:
    def __init__(self, instances: Instances) -> None:
        self._count = instances.count
        self._waits = entries_of(instances.waits)
        self._raises = entries_of(instances.raises)
        self._signals: list[int] = instances.signal.tolist()
        self._producers: list[int] = instances.producer.tolist()
        self._events = [_TagEvents() for _ in range(instances.tags.count)]
        self._after: list[Clock] = []  # the clock of an instance with its own events
        self._order = TagOrder([], [], (), ())
        self._stuck: list[Stuck] = []
        self._unordered: list[Unordered] = []

    def run(self) -> TagOrder:
        """Instance by instance."""
        for number in range(self._count):
            clock = self._clock(number)
            self._order.clocks.append(clock)
            self._complete(number, clock)
        found = self._order
        return TagOrder(found.clocks, found.signalled, tuple(self._stuck), tuple(self._unordered))

    def _clock(self, number: int) -> Clock:
        # A chain runs as one: what its first block waits for is before all of it.
        head = self._producers[number]
        clock = NOTHING if head < 0 else self._order.clocks[head]
        for tag, value in self._waits[number]:
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

    def _complete(self, number: int, clock: Clock) -> None:
        after = clock
        for first, count, value in self._raises[number]:
            for tag in range(first, first + count):
                events = self._events[tag]
                if value > events.count:
                    after = self._event(number, tag, value, clock, after)
                elif value > max(0, clock.index(tag)):  # it would be a rise if it came early
                    self._unordered.append(Unordered(events.instances[-1], number, tag))
        signalled = (-1, 0)
        tag = self._signals[number]
        if tag >= 0:
            count = self._events[tag].count + 1
            after = self._event(number, tag, count, clock, after)
            signalled = (tag, count)
        self._order.signalled.append(signalled)
        self._after.append(after)
        head = self._producers[number]
        while head >= 0:  # it is over when the last of its chain is
            self._order.signalled[head] = signalled
            head = self._producers[head]

    def _event(self, number: int, tag: int, count: int, clock: Clock, after: Clock) -> Clock:
        """An instance brings a tag to a count; the event before must be over by then."""
        events = self._events[tag]
        if events.counts and clock.index(tag) < events.count:
            self._unordered.append(Unordered(events.instances[-1], number, tag))
        events.counts.append(count)
        events.instances.append(number)
        return after.with_index(tag, count)


def entries_of(lists: Lists) -> list[list[tuple[int, ...]]]:
    """What every instance has, entry by entry."""
    entries = list(zip(*(column.tolist() for column in lists.columns), strict=True))
    return [entries[a:b] for a, b in pairwise(lists.first.tolist())]

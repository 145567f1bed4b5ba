"""Tags while an image runs: who waits for what, and which instances no longer wait."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nacre.base.diagnostics import Diagnostic
from nacre.tcb.machine.findings import place_of
from nacre.tcb.machine.instances import Instances
from nacre.tcb.rules.running import TCB51

_MOST_SHOWN = 5


class TagStates:
    """Counters that only rise. Waits of a tag lie in the order of their values."""

    def __init__(self, instances: Instances) -> None:
        tags, values = instances.waits.columns
        waiting = np.repeat(np.arange(instances.count), np.diff(instances.waits.first))
        order = np.lexsort((values, tags))
        self.counts = [0] * instances.tags.count
        self._value: list[int] = values[order].tolist()
        self._waiting: list[int] = waiting[order].tolist()
        ends = np.searchsorted(tags[order], np.arange(instances.tags.count), side="right")
        starts = np.searchsorted(tags[order], np.arange(instances.tags.count), side="left")
        self._next: list[int] = starts.tolist()
        self._end: list[int] = ends.tolist()
        # What streams into an instance comes before it, as a tag would say.
        is_fed = (instances.producer >= 0).astype(np.int64)
        self.open: list[int] = (np.diff(instances.waits.first) + is_fed).tolist()
        self._consumer: list[int] = instances.consumer.tolist()
        self._signal: list[int] = instances.signal.tolist()
        self._first_raise: list[int] = instances.raises.first.tolist()
        self._raises = tuple(column.tolist() for column in instances.raises.columns)

    def begin(self) -> list[int]:
        """The instances that wait for nothing as a run begins."""
        free = [number for number, count in enumerate(self.open) if count == 0]
        for tag in range(len(self.counts)):
            self._advance(tag, free)
        return sorted(free)

    def complete(self, instance: int) -> list[int]:
        """Raise the tags of an instance that is complete; those that then wait for nothing."""
        freed: list[int] = []
        tags, counts, values = self._raises
        for at in range(self._first_raise[instance], self._first_raise[instance + 1]):
            for tag in range(tags[at], tags[at] + counts[at]):
                if self.counts[tag] < values[at]:
                    self.counts[tag] = values[at]
                    self._advance(tag, freed)
        signal = self._signal[instance]
        if signal >= 0:
            self.counts[signal] += 1
            self._advance(signal, freed)
        if self._consumer[instance] >= 0:
            self._satisfy(self._consumer[instance], freed)
        return freed

    def waiting(self) -> list[int]:
        """The instances that wait for a tag."""
        return [number for number, count in enumerate(self.open) if count > 0]

    def _advance(self, tag: int, freed: list[int]) -> None:
        count, at, end = self.counts[tag], self._next[tag], self._end[tag]
        while at < end and self._value[at] <= count:
            self._satisfy(self._waiting[at], freed)
            at += 1
        self._next[tag] = at

    def _satisfy(self, waiting: int, freed: list[int]) -> None:
        self.open[waiting] -= 1
        if self.open[waiting] == 0:
            freed.append(waiting)


def _describe_waits(instances: Instances, counts: Sequence[int], instance: int) -> str:
    """What an instance still waits for: `d.t3 at 5 (it is at 2)`."""
    tags, values = instances.waits.columns
    first = instances.waits.first
    found = []
    for at in range(int(first[instance]), int(first[instance + 1])):
        tag, value = int(tags[at]), int(values[at])
        if counts[tag] < value:
            found.append(f"{instances.tags.name(tag)} at {value} (it is at {counts[tag]})")
    return " and ".join(found) or "a unit, a token or what streams into it"


def stuck_finding(
    instances: Instances, counts: Sequence[int], waiting: Sequence[int]
) -> Diagnostic:
    """Who waits for what, where a run cannot go on."""
    shown = [f"`{instances.name(number)}` waits for {_describe_waits(instances, counts, number)}"
             for number in waiting[:_MOST_SHOWN]]  # fmt: skip
    rest = len(waiting) - len(shown)
    more = f", and {rest} more wait" if rest else ""
    message = f"the run cannot go on: {', '.join(shown)}{more}"
    return TCB51.at(place_of(instances, waiting[0]), message)

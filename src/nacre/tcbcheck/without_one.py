"""What can run although one instance never completes, for all instances at once.

A tag that is raised to a value and then signalled is higher than one that is signalled first. So
its count is that of the signals, or, for any raise that has happened, its value and the signals
since. Which of them are since, a run may choose. Two bounds leave the choice open:

- at most those signals are since a raise without which the raise can happen, and a raise adds no
  more than what its value is above a count that has been waited for by then;
- at least those are since it which cannot happen without it.

By the first, no less can run than in any run of the machine; by the second, whatever can run does
so in every run. Both are least fixpoints, since more that has run never makes a count lower:
nothing can run at first, and what can is added until nothing changes. Where no signal can come on
either side of a raise, the two are one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from nacre.tcb.machine.instances import Instances
from nacre.tcbcheck.tag_order import entries_of
from nacre.tcbcheck.tally import Tally


class TagSteps:
    """What every instance waits for, raises and signals, and what streams into it."""

    def __init__(self, instances: Instances) -> None:
        self.count = instances.count
        self.waits = entries_of(instances.waits)
        self.signals: list[int] = instances.signal.tolist()  # -1: none
        self.raises = [
            [(tag, value) for first, count, value in raises for tag in range(first, first + count)]
            for raises in entries_of(instances.raises)
        ]
        self.producers: list[int] = instances.producer.tolist()  # -1: none
        self.signallers: dict[int, list[int]] = defaultdict(list)  # by tag
        for number, tag in enumerate(self.signals):
            self.signallers[tag].append(number)
        self.raisers: dict[int, list[tuple[int, int]]] = defaultdict(list)  # by tag, with values
        for number, raises in enumerate(self.raises):
            for tag, value in raises:
                self.raisers[tag].append((number, value))


class _Raise:
    """An instance that raises a tag, by how much at most, and the signals since."""

    __slots__ = ("gain", "instance", "since", "value")

    def __init__(self, instance: int, value: int, gain: int) -> None:
        self.instance, self.value, self.gain = instance, value, gain
        self.since = Tally()


class _TagCounts:
    """The counts of a tag without each of the instances: its signals, and all that adds to it."""

    def __init__(self, raises: list[_Raise]) -> None:
        self.signals, self.added = Tally(), Tally()
        self.raises = raises
        self.changes = 0  # how often it has changed


Gains = Mapping[tuple[int, int], int]  # what an instance adds to a tag at most that it raises


class Completions:
    """By instance the set of those without which it can start, and can complete.

    The number behind the last instance stands for a run in which none is left out; all are complete
    in order if each of them can be by those before it in the program alone.
    """

    def __init__(
        self, steps: TagSteps, gains: Gains | None = None, withheld: int | None = None
    ) -> None:
        """Of all instances, or of all but one beside."""
        self._steps, self._withheld = steps, withheld
        self._is_plain = gains is None
        self.everything = (2 << steps.count) - 1
        self.start = [0] * steps.count
        self.complete = [0] * steps.count
        known = gains or {}
        self._counts: dict[int, _TagCounts] = defaultdict(lambda: _TagCounts([]))
        for tag, raisers in steps.raisers.items():
            raises = [_Raise(one, value, known.get((one, tag), value)) for one, value in raisers]
            self._counts[tag] = _TagCounts(raises)
        self._seen = [-1] * steps.count  # changes of its tags when an instance was looked at
        has_changed = self._look_at_all()
        self.is_complete_in_order = all(map(self.completes, range(steps.count)))
        while has_changed:
            has_changed = self._look_at_all()

    def _look_at_all(self) -> bool:
        return bool(sum([self._advance(number) for number in range(self._steps.count)]))

    def completes(self, number: int) -> bool:
        """Whether an instance completes where none is left out."""
        return bool(self.complete[number] >> self._steps.count & 1)

    def _advance(self, number: int) -> bool:
        """What an instance can do as far as others are known; whether that is more than before."""
        steps = self._steps
        head = steps.producers[number]
        seen = sum(self._counts[tag].changes for tag, _ in steps.waits[number])
        if (seen == self._seen[number] and head < 0) or number == self._withheld:
            return False
        self._seen[number] = seen
        start = self.everything if head < 0 else self.start[head]
        for tag, value in steps.waits[number]:
            start &= self._reached(self._counts[tag], value)
        complete = start & ~(1 << number)
        if head >= 0:
            complete &= self.complete[head]
        has_changed = (start, complete) != (self.start[number], self.complete[number])
        self.start[number] = start
        self._add(number, complete)
        return has_changed

    def _reached(self, counts: _TagCounts, value: int) -> int:
        """Without which instances a tag reaches a value."""
        found = counts.signals.at_least(value, self.everything)
        for raised in counts.raises:
            done = self.complete[raised.instance]
            if done & ~found:
                found |= done & raised.since.at_least(value - raised.value, self.everything)
        if counts.raises and not self._is_plain:
            found &= counts.added.at_least(value, self.everything)
        return found

    def _add(self, number: int, complete: int) -> None:
        """An instance can complete without some more."""
        new = complete & ~self.complete[number]
        if not new:
            return
        self.complete[number] = complete
        for tag in {tag for tag, _ in self._steps.raises[number]}:
            self._raise(number, tag, new)
        tag = self._steps.signals[number]
        if tag >= 0:
            counts = self._counts[tag]
            counts.changes += 1
            counts.signals.add(new)
            counts.added.add(new)
            for raised in counts.raises:
                if number == raised.instance or self._is_since(number, raised.instance):
                    raised.since.add(new)

    def _raise(self, number: int, tag: int, new: int) -> None:
        counts = self._counts[tag]
        counts.changes += 1
        later = [one for one in self._newly_since(tag, new) if one != number]
        for raised in counts.raises:
            if raised.instance == number:
                counts.added.add(new, max(0, raised.gain))
                for one in later:
                    raised.since.add(self.complete[one])

    def _newly_since(self, tag: int, new: int) -> list[int]:
        """The signals without which a raise can happen, and could not as far as was known."""
        return [one for one in self._steps.signallers[tag] if new >> one & 1]

    def _is_since(self, signaller: int, raiser: int) -> bool:
        """Whether a signal counts as one that comes after a raise."""
        return bool(self.complete[raiser] >> signaller & 1)


class CertainCompletions(Completions):
    """By the second bound, with what the first has found."""

    def __init__(self, steps: TagSteps, most: Completions) -> None:
        self._most = most
        super().__init__(steps)

    def _newly_since(self, tag: int, new: int) -> list[int]:
        return []

    def _is_since(self, signaller: int, raiser: int) -> bool:
        return not self._most.complete[signaller] >> raiser & 1


def possible_completions(steps: TagSteps, withheld: int | None = None) -> Completions:
    """By the first bound: what raises add follows from what has to be before them."""
    plain = Completions(steps, withheld=withheld)
    if not any(find_races(steps, plain)):
        return plain
    return Completions(steps, _gains(steps, plain), withheld)


def _gains(steps: TagSteps, most: Completions) -> Gains:
    waits: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for number, found in enumerate(steps.waits):
        for tag, value in found:
            waits[tag].append((number, value))
    gains: dict[tuple[int, int], int] = {}
    for tag, raisers in steps.raisers.items():
        for one, value in raisers:
            known = (v for number, v in waits[tag] if not most.complete[one] >> number & 1)
            gains[one, tag] = max(gains.get((one, tag), 0), value - max(known, default=0))
    return gains


class Race(NamedTuple):
    """A signal of a tag that can come before a raise of it, and after."""

    tag: int
    signaller: int
    raiser: int


def find_races(steps: TagSteps, most: Completions) -> Iterator[Race]:
    """Every signal and raise whose order is open."""
    complete = most.complete
    for tag, raisers in sorted(steps.raisers.items()):
        for raiser, _ in raisers:
            for signaller in steps.signallers[tag]:
                if complete[signaller] >> raiser & 1 and complete[raiser] >> signaller & 1:
                    yield Race(tag, signaller, raiser)

"""Order where clocks are not enough: what can run although one instance never does.

It is asked where the events of a tag are not ordered one after the other, and takes runs for every
question. Tags only rise, but a tag that is raised before it is signalled ends higher than one that
is raised after, so a run has to choose. Raising early never makes a count lower; so those go first
that raise, then those that signal no tag which somebody is still to raise. Other choices are tried
beside it, and who completes in any of them is not after the one that is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from random import Random

from nacre.tcb.machine.instances import Instances
from nacre.tcbcheck.tag_order import Stuck, entries_of

_SHUFFLED = 12  # orders that are tried beside those that are likely to matter


class TriedOrder:
    """What is before what, by runs without the first."""

    def __init__(self, instances: Instances) -> None:
        # Every instance has a tag of its own here, so that no reader of a byte stands for another.
        self.signalled = [(number, 1) for number in range(instances.count)]
        self._tags = instances.tags
        self._steps = steps = _Steps(instances)
        numbers = range(instances.count)
        raised = {tag for raises in steps.raises for tag, _ in raises}

        def rank(number: int) -> int:
            return 0 if steps.raises[number] else 1 + (steps.signals[number] in raised)

        self._orders = (
            list(numbers),
            sorted(numbers, key=rank),
            sorted(numbers, key=lambda number: (rank(number), -number)),
        )
        self._completed: dict[int, set[int]] = {}  # without an instance

    def before(self, first: int, second: int) -> bool:
        """Whether the second completes in no run without the first."""
        if first not in self._completed:
            runs = (self._run(order, first, [0] * self._tags.count) for order in self._orders)
            self._completed[first] = set().union(*runs)
        return second not in self._completed[first]

    def find_stuck(self) -> tuple[Stuck, ...]:
        """Who waits for ever in one of many runs.

        A signal that comes before its tag is raised is lost. So whatever raises tags comes as late
        as it can in half of them; in others it comes early, and lets signals be early in turn.
        """
        chance = Random(0)  # of no matter which, but always the same
        shuffled = (chance.sample(self._orders[0], len(self._orders[0])) for _ in range(_SHUFFLED))
        for order in chain(self._orders, shuffled):
            late = sorted(order, key=lambda number: bool(self._steps.raises[number]))
            for run in (late, order):
                counts = [0] * self._tags.count
                done = self._run(run, None, counts)
                if len(done) < len(run):
                    return tuple(self._stuck(counts, done))
        return ()

    def _stuck(self, counts: list[int], done: set[int]) -> Iterator[Stuck]:
        for number, waits in enumerate(self._steps.waits):
            for tag, value in waits if number not in done else ():
                if counts[tag] < value:
                    yield Stuck(number, tag, value, counts[tag])
                    break

    def _run(self, order: list[int], withheld: int | None, counts: list[int]) -> set[int]:
        """The instances that complete although one never does, the first of an order each time.

        `counts` are those of tags, which begin with 0.
        """
        done: set[int] = set()
        left = [number for number in order if number != withheld]
        while True:
            ready = next((n for n in left if self._steps.is_ready(n, counts, done)), None)
            if ready is None:
                return done
            left.remove(ready)
            done.add(ready)
            for tag, value in self._steps.raises[ready]:
                counts[tag] = max(counts[tag], value)
            if (signal := self._steps.signals[ready]) is not None:
                counts[signal] += 1


class _Steps:
    """What every instance waits for, raises and signals."""

    def __init__(self, instances: Instances) -> None:
        self.waits = entries_of(instances.waits)
        self.signals = [None if tag < 0 else tag for tag in instances.signal.tolist()]
        self.raises = [
            [(tag, value) for first, count, value in raises for tag in range(first, first + count)]
            for raises in entries_of(instances.raises)
        ]
        self.producers = [None if at < 0 else at for at in instances.producer.tolist()]

    def is_ready(self, number: int, counts: list[int], done: set[int]) -> bool:
        """Whether all waits of an instance hold, and what streams into it has run."""
        producer = self.producers[number]
        if producer is not None and producer not in done:
            return False
        return all(counts[tag] >= value for tag, value in self.waits[number])

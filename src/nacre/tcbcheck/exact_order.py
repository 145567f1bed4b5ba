"""Order where clocks are not enough: what can run although one instance never does.

Tags only rise, so the instances that complete without some instance are the same in whatever order
they do, and one that does not complete is after it. That holds for every image, and takes a run
for each question; it is asked where the events of a tag are not ordered one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator

from nacre.tcbcheck.instances import Instances, TagNumbers
from nacre.tcbcheck.tag_order import raise_columns, signal_columns, wait_columns


class ExactOrder:
    """What is before what, by a run without the first."""

    def __init__(self, instances: Instances, tags: TagNumbers) -> None:
        # Every instance has a tag of its own here, so that no reader of a byte stands for another.
        self.signalled = [(number, 1) for number in range(instances.count)]
        self._instances, self._tags = instances, tags
        self._waits = wait_columns(instances, tags)
        self._signals = signal_columns(instances, tags)
        self._raises = raise_columns(instances, tags)
        self._owners, self._rows = instances.block.tolist(), instances.row.tolist()
        self._completed: dict[int, set[int]] = {}  # without an instance

    def before(self, first: int, second: int) -> bool:
        """Whether the second cannot complete without the first."""
        if first not in self._completed:
            self._completed[first] = self._run(first)
        return second not in self._completed[first]

    def _run(self, withheld: int) -> set[int]:
        """The instances that complete although one never does."""
        counts = [0] * self._tags.count
        left = [n for n in range(self._instances.count) if n != withheld]
        done: set[int] = set()
        while True:
            blocked = []
            for number in left:
                if self._may_follow(number, done) and self._is_ready(number, counts):
                    self._complete(number, counts)
                    done.add(number)
                else:
                    blocked.append(number)
            if len(blocked) == len(left):
                return done
            left = blocked

    def _is_ready(self, number: int, counts: list[int]) -> bool:
        owner, row = self._owners[number], self._rows[number]
        return all(counts[tags[row]] >= values[row] for tags, values in self._waits[owner])

    def _may_follow(self, number: int, done: set[int]) -> bool:
        """Whether what streams into an instance has run."""
        head = self._instances.streams_from(self._owners[number], self._rows[number])
        return head is None or head in done

    def _complete(self, number: int, counts: list[int]) -> None:
        owner, row = self._owners[number], self._rows[number]
        for tag, value in self._raised(owner, row):
            counts[tag] = max(counts[tag], value)
        signal = self._signals[owner]
        if signal is not None:
            counts[signal[row]] += 1

    def _raised(self, owner: int, row: int) -> Iterator[tuple[int, int]]:
        for tags, count, values in self._raises[owner]:
            for tag in range(tags[row], tags[row] + count):
                yield tag, values[row]

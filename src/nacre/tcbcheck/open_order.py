"""Order where the events of a tag come in an open order, so that clocks are not enough.

What is before what follows from what can run without one instance. Two bounds of that
(`without_one`) are the same where no tag can be signalled on either side of a raise. Where one can,
they may differ, and what lies between them is looked for by runs that are made for it: in which
such signals come as late as they can, or such raises. A run that is found is a witness; where none
is, nothing is proved. Whether any run among all is one is as hard as satisfying a formula, since
every such tag is a choice.

Where blocks stand in queues, one whose count may come short without what stands behind it could
hold up just that: there the count has to be certain by what is before it in the program.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterator
from functools import cached_property
from itertools import islice

import numpy as np

from nacre.base.term_columns import Column
from nacre.tcb.machine.instances import Instances
from nacre.tcb.machine.tag_states import TagStates
from nacre.tcbcheck.tag_order import BeforeColumns, Mask, Stuck
from nacre.tcbcheck.without_one import (
    CertainCompletions,
    Completions,
    Race,
    TagSteps,
    find_races,
    possible_completions,
)

_MOST_DIRECTED = 32  # tags for each of which runs are made in which it is raised late
_MOST_TRIED = 4_000_000  # instances in all runs, which take half a minute
_MOST_ASKED = 2_000_000  # pairs of which one may be before the other by what is left out
_RUNS_OF_A_BOUND = 4  # that take as long as bounding what runs without an instance


class OpenOrder:
    """What is before what, by what can run without the first."""

    def __init__(self, instances: Instances, has_queues: bool = False) -> None:
        """With queues no block may need one that stands behind it in the program."""
        # Every instance has a tag of its own here, so that no reader of a byte stands for another.
        self.signalled = [(number, 1) for number in range(instances.count)]
        self._instances, self._has_queues = instances, has_queues
        self._tried = 0  # instances in runs
        self._steps = steps = TagSteps(instances)
        self._last = _ends_of_chains(steps)
        self._most = possible_completions(steps)
        self.races = tuple(find_races(steps, self._most))
        self._least = CertainCompletions(steps, self._most) if self.races else self._most
        self._completed: dict[int, list[set[int]]] = defaultdict(
            list
        )  # by runs without an instance
        self._without: dict[int, Completions] = {}  # of an image without an instance

    def before(self, first: int, second: int) -> bool:
        """Whether it is proved that an instance is complete whenever another starts."""
        withheld = self._last[first]
        if not self._most.start[second] >> withheld & 1:
            return True
        if not self.races or self.is_open(first, second):
            return False
        # Which signals have to come before a raise may depend on what is left out.
        if withheld not in self._without:
            if not self._can_afford(_RUNS_OF_A_BOUND):
                return False
            self._without[withheld] = possible_completions(self._steps, withheld)
        return not self._without[withheld].start[second] >> self._steps.count & 1

    def columns(self, firsts: Column) -> BeforeColumns:
        """The same for many instances at a time."""
        return _OpenColumns(self, firsts)

    def needed(self, firsts: Column, second: int) -> Mask:
        """Those without which an instance cannot start, whatever order events come in."""
        can_lack = self._most.start[second].to_bytes(self._steps.count // 8 + 1, "little")
        bits = np.unpackbits(np.frombuffer(can_lack, np.uint8), bitorder="little")
        needed: Mask = bits[np.array(self._last)[firsts]] == 0
        return needed

    def is_open(self, first: int, second: int) -> bool:
        """Whether it is proved that an instance can start before another is complete."""
        withheld = self._last[first]
        if self._least.start[second] >> withheld & 1:
            return True
        return any(second in completed for completed in self._runs_without(withheld))

    def _runs_without(self, withheld: int) -> Iterator[set[int]]:
        """What completes in runs without an instance, as many as there is time for."""
        found = self._completed[withheld]
        yield from found
        for late, sign in self._directions[len(found) :]:
            if self._can_afford(1):
                found.append(self._run(late, sign, withheld)[0])
                yield found[-1]

    def _can_afford(self, runs: int) -> bool:
        """Whether so much more may be tried, which it is then."""
        self._tried += runs * self._steps.count
        return self._tried <= _MOST_TRIED

    @cached_property
    def is_free_of_stops(self) -> bool:
        """Whether it is proved that every run completes, and that no queue blocks for ever."""
        if self._has_queues and self.races:
            return self._least.is_complete_in_order
        return all(map(self._least.completes, range(self._steps.count)))

    def find_stuck(self) -> tuple[Stuck, ...]:
        """Who waits for ever in a run whose signals are lost, which come before their raise."""
        if self.is_free_of_stops:
            return ()
        for late, sign in self._directions:
            done, counts = self._run(late, sign)
            if len(done) < self._steps.count:
                return tuple(self._stuck(counts, done))
        return ()

    @cached_property
    def _directions(self) -> list[tuple[Collection[int], int]]:
        """What comes late in a run, and whether the others come in program order or against it."""
        return [(late, sign) for late in _late_instances(self.races) for sign in (1, -1)]

    def _stuck(self, counts: list[int], done: set[int]) -> Iterator[Stuck]:
        for number, waits in enumerate(self._steps.waits):
            for tag, value in waits if number not in done else ():
                if counts[tag] < value:
                    yield Stuck(number, tag, value, counts[tag])
                    break

    def _run(
        self, late: Collection[int], sign: int, withheld: int = -1
    ) -> tuple[set[int], list[int]]:
        """What completes although one instance never does, and the counts of tags then."""
        states = TagStates(self._instances)
        done: set[int] = set()
        ready: list[tuple[bool, int]] = []
        freed = states.begin()
        while ready or freed:
            for number in freed:
                if number != withheld:
                    heapq.heappush(ready, (number in late, sign * number))
            if not ready:
                break
            number = sign * heapq.heappop(ready)[1]
            done.add(number)
            freed = states.complete(number)
        return done, states.counts


class _OpenColumns:
    """Which of some instances are before another."""

    def __init__(self, order: OpenOrder, firsts: Column) -> None:
        self._order, self._firsts = order, firsts
        self._asked = 0  # pairs, one at a time

    def before(self, second: int, rows: slice) -> Mask:
        """Those among some rows that are proved to be complete before another instance starts."""
        firsts, order = self._firsts[rows], self._order
        found = order.needed(firsts, second)
        if order.races and self._asked < _MOST_ASKED:
            open_rows = np.flatnonzero(~found).tolist()
            self._asked += len(open_rows)
            found[open_rows] = [order.before(int(firsts[row]), second) for row in open_rows]
        return found


def _late_instances(races: Collection[Race]) -> Iterator[frozenset[int]]:
    """Sides of races: all signals, all raises, and the raises of one tag with other signals."""
    yield frozenset(race.signaller for race in races)
    yield frozenset(race.raiser for race in races)
    for tag in islice(dict.fromkeys(race.tag for race in races), _MOST_DIRECTED):
        yield frozenset(race.raiser if race.tag == tag else race.signaller for race in races)
        yield frozenset(race.signaller if race.tag == tag else race.raiser for race in races)


def _ends_of_chains(steps: TagSteps) -> list[int]:
    """The last of every instance's chain, with which it is complete."""
    last = list(range(steps.count))
    for number in reversed(range(steps.count)):
        if (head := steps.producers[number]) >= 0:
            last[head] = last[number]
    return last

"""Images run by tags alone, block by block, without columns: naive loops, and no memory."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from nacre.base.terms import LoopVariable, Operation, Term, apply
from nacre.tcb.image import Block, Image, Item, Repeat, Tag

Instance = tuple[Block, tuple[int, ...]]  # a block, and the counters around it
Key = tuple[int, tuple[int, ...]]  # the position of a task, and the counters around it


def value(term: Term, counters: Sequence[int]) -> int:
    """A term by the rules of integers."""
    if isinstance(term, int):
        return term
    if isinstance(term, LoopVariable):
        return counters[term.depth]
    assert isinstance(term, Operation)
    return apply(term.op, value(term.left, counters), value(term.right, counters))


def instances(items: Sequence[Item], counters: tuple[int, ...] = ()) -> Iterator[Instance]:
    """Every block as often as it is repeated, in the order of its stream."""
    for item in items:
        if isinstance(item, Repeat):
            for count in range(item.start, item.start + value(item.count, counters)):
                yield from instances(item.items, (*counters, count))
        else:
            yield item, counters


class TagMachine:
    """Tags that blocks wait for and raise."""

    def __init__(self, *, checks: bool = True) -> None:
        self._counts: dict[tuple[int, int], int] = {}
        self._checks = checks  # that no tag would go down

    def is_ready(self, instance: Instance) -> bool:
        """Whether all waits of an instance hold."""
        block, counters = instance
        return all(
            self._counts.get(_at(wait.tag, counters), 0) >= value(wait.value, counters)
            for wait in block.waits
        )

    def complete(self, instance: Instance) -> None:
        """Raise the tags that an instance raises; AssertionError for one that would go down."""
        block, counters = instance
        for raised in block.sets:
            engine, first = _at(raised.tag, counters)
            least = value(raised.value, counters)
            for index in range(first, first + raised.count):
                count = self._counts.get((engine, index), 0)
                assert count <= least or not self._checks
                self._counts[engine, index] = max(count, least)
        if block.signal is not None:
            at = _at(block.signal, counters)
            self._counts[at] = self._counts.get(at, 0) + 1


def _at(tag: Tag, counters: Sequence[int]) -> tuple[int, int]:
    return tag.engine, value(tag.index, counters)


def run_by_tags(image: Image, seed: int) -> list[Key]:
    """The tasks in an order that tags allow, chosen at random; AssertionError where it is stuck."""
    rng = random.Random(seed)
    left = [one for stream in image.streams for one in instances(stream.items)]
    machine, done = TagMachine(), []
    while left:
        ready = [number for number, one in enumerate(left) if machine.is_ready(one)]
        assert ready, f"stuck: {[(b.kind, b.position, c) for b, c in left[:5]]}"
        block, counters = instance = left.pop(rng.choice(ready))
        machine.complete(instance)
        if block.kind == "task":
            done.append((block.position, counters))
    return done


def run_without(
    image: Image, withheld: Key, *, checks: bool = True, seed: int | None = None
) -> set[Key]:
    """The tasks that can run although one never does; with a seed in an order by chance."""
    left = [one for stream in image.streams for one in instances(stream.items)]
    left = [(b, c) for b, c in left if b.kind != "task" or (b.position, c) != withheld]
    machine, done = TagMachine(checks=checks), set()
    rng = random.Random(seed)
    while ready := [one for one in left if machine.is_ready(one)]:
        for instance in ready if seed is None else [rng.choice(ready)]:
            machine.complete(instance)
            left.remove(instance)
            if instance[0].kind == "task":
                done.add((instance[0].position, instance[1]))
    return done

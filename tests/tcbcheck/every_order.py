"""Every order in which the blocks of a small image can run, one state after the other."""

from __future__ import annotations

from dataclasses import dataclass, field

from nacre.tcb.image import Image
from tests.bind.interleavings import Instance, instances, value

_Counts = tuple[tuple[tuple[int, int], int], ...]  # by engine and index, sorted
_State = tuple[frozenset[int], _Counts]


class TooManyStatesError(Exception):
    """An image with more states than a test has time for."""


@dataclass
class EveryOrder:
    """What happens in some order: which blocks start before which complete, and who stops."""

    blocks: list[Instance]
    starts_before: set[tuple[int, int]] = field(default_factory=set)  # the first is not complete
    can_stop: bool = False
    first_can_wait: bool = (
        False  # the first of those that are left, for one behind it in its stream
    )


def every_order(image: Image, most_states: int = 20_000) -> EveryOrder:
    """All orders of an image without chains."""
    blocks = [one for stream in image.streams for one in instances(stream.items)]
    found = EveryOrder(blocks)
    begin: _State = (frozenset(), ())
    seen, left = {begin}, [begin]
    while left:
        done, counts = left.pop()
        open_ = [number for number in range(len(blocks)) if number not in done]
        ready = [number for number in open_ if _is_ready(blocks[number], dict(counts))]
        found.can_stop |= bool(open_) and not ready
        found.first_can_wait |= open_[:1] != ready[:1]
        found.starts_before |= {(a, b) for b in ready for a in open_ if a != b}
        for number in ready:
            state = (done | {number}, _complete(blocks[number], dict(counts)))
            if state not in seen:
                seen.add(state)
                left.append(state)
        if len(seen) > most_states:
            raise TooManyStatesError
    return found


def _is_ready(instance: Instance, counts: dict[tuple[int, int], int]) -> bool:
    block, counters = instance
    return all(
        counts.get((wait.tag.engine, value(wait.tag.index, counters)), 0)
        >= value(wait.value, counters)
        for wait in block.waits
    )


def _complete(instance: Instance, counts: dict[tuple[int, int], int]) -> _Counts:
    block, counters = instance
    for raised in block.sets:
        first = value(raised.tag.index, counters)
        for index in range(first, first + raised.count):
            at = (raised.tag.engine, index)
            counts[at] = max(counts.get(at, 0), value(raised.value, counters))
    if block.signal is not None:
        at = (block.signal.engine, value(block.signal.index, counters))
        counts[at] = counts.get(at, 0) + 1
    return tuple(sorted(counts.items()))

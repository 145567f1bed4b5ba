"""Every order in which the blocks of a small image can run, one state after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nacre.base.terms import Term
from nacre.tcb.image import Image, Tag
from tests.bind.interleavings import Instance, instances, value

_State = tuple[int, tuple[int, ...]]  # the blocks that are complete as bits, and counts by tag


class TooManyStatesError(Exception):
    """An image with more states than a test has time for."""


@dataclass
class EveryOrder:
    """What happens in some order: which blocks start before which complete, and who stops."""

    blocks: list[Instance]
    starts_before: set[tuple[int, int]]  # the first is not complete when the second starts
    can_stop: bool = False
    first_can_wait: bool = (
        False  # the first of those that are left, for one behind it in its stream
    )


@dataclass(frozen=True)
class _Step:
    """A block with its terms worked out: tags by their numbers."""

    waits: list[tuple[int, int]]
    raises: list[tuple[int, int]]
    signal: int | None


def every_order(image: Image, most_states: int = 20_000) -> EveryOrder:
    """All orders of an image without chains."""
    blocks = [one for stream in image.streams for one in instances(stream.items)]
    tags: dict[tuple[int, int], int] = {}
    steps = [_step(one, tags) for one in blocks]
    open_at_start = [0] * len(blocks)  # of every block who can be left when it starts, as bits
    found, everyone = EveryOrder(blocks, set()), (1 << len(blocks)) - 1
    begin: _State = (0, (0,) * len(tags))
    seen, left = {begin}, [begin]
    while left:
        done, counts = left.pop()
        open_ = everyone & ~done
        ready = [number for number in _numbers(open_) if _is_ready(steps[number], counts)]
        found.can_stop |= bool(open_) and not ready
        found.first_can_wait |= list(_numbers(open_ & -open_)) != ready[:1]
        for number in ready:
            open_at_start[number] |= open_
            state = (done | 1 << number, _complete(steps[number], counts))
            if state not in seen:
                seen.add(state)
                left.append(state)
        if len(seen) > most_states:
            raise TooManyStatesError
    for number, bits in enumerate(open_at_start):
        found.starts_before |= {(other, number) for other in _numbers(bits) if other != number}
    return found


def _step(instance: Instance, tags: dict[tuple[int, int], int]) -> _Step:
    block, counters = instance

    def number(tag: Tag, further: int = 0) -> int:
        at = (tag.engine, value(tag.index, counters) + further)
        return tags.setdefault(at, len(tags))

    def known(term: Term) -> int:
        return value(term, counters)

    return _Step(
        [(number(wait.tag), known(wait.value)) for wait in block.waits],
        [(number(s.tag, at), known(s.value)) for s in block.sets for at in range(s.count)],
        None if block.signal is None else number(block.signal),
    )


def _numbers(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def _is_ready(step: _Step, counts: tuple[int, ...]) -> bool:
    return all(counts[tag] >= least for tag, least in step.waits)


def _complete(step: _Step, counts: tuple[int, ...]) -> tuple[int, ...]:
    after = list(counts)
    for tag, least in step.raises:
        after[tag] = max(after[tag], least)
    if step.signal is not None:
        after[step.signal] += 1
    return tuple(after)

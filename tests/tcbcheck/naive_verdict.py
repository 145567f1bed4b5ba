"""Whether the order of an image is wrong, by sets of bytes and runs without columns.

All orders are tried, or, where an image has too many states for that, some.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import combinations, product
from math import prod

from nacre.tcb.image import Image, Item, Operand, Repeat
from nacre.tcb.machine.timing import time_image
from tests.bind.interleavings import Instance, Key, TagMachine, run_without, value
from tests.effort import scaled
from tests.tcbcheck.every_order import TooManyStatesError, every_order

# Raised before it is signalled, a tag ends higher than raised after it: some orders are tried.
SEEDS = (None, *range(scaled(4)))
ORDERS = scaled(8)
STATES = 1500  # of an image all of whose orders are tried


def program_order(image: Image) -> list[Instance]:
    """All instances of an image, sorted by what they are sorted by in the program."""
    keyed: Keyed = []
    for stream in image.streams:
        keyed += _keys(stream.items, (), ())
    keyed.sort(key=lambda pair: pair[0])
    return [instance for _, instance in keyed]


Keyed = list[tuple[tuple[int, ...], Instance]]


def _keys(items: Sequence[Item], path: tuple[int, ...], counters: tuple[int, ...]) -> Keyed:
    found: Keyed = []
    for item in items:
        if isinstance(item, Repeat):
            for count in range(item.start, item.start + value(item.count, counters)):
                inner = (*path, item.position, count)
                found += _keys(item.items, inner, (*counters, count))
        else:
            found.append(((*path, item.position, -1), (item, counters)))
    return found


def verdict(image: Image, ordered: set[tuple[Key, Key]]) -> set[str]:
    """The codes that a mutant deserves whose order is another than that of its plan."""
    if blocks_for_ever(image):
        return {"TCB85"}
    conflicts = list(ordered_conflicts(image, ordered))
    try:
        every = every_order(image, STATES)
    except TooManyStatesError:
        is_lost, stops = _some_run_loses(image, conflicts), can_stop(image)
    else:
        keys = [(block.position, counters) for block, counters in every.blocks]
        early = {(keys[a], keys[b]) for a, b in every.starts_before}
        is_lost, stops = not early.isdisjoint(conflicts), every.can_stop
    found = {"TCB84"} if is_lost else set()
    if stops:
        return found | {"TCB85"}
    return found | {"TCB89"} if time_image(image).is_stuck else found  # for want of tokens


def is_right(codes: set[str], expected: set[str]) -> bool:
    """Whether codes are those that are expected.

    An image that is refused for its order need not be tried until it stops.
    """
    return codes == expected or "TCB84" in codes & expected


def can_stop(image: Image) -> bool:
    """Whether a run comes to a point where nothing can start, in some of many orders.

    A tag that is signalled before it is raised has lost the signal: in half of the orders whatever
    raises tags goes last.
    """
    return any(_stops(image, seed, is_late) for seed in range(ORDERS) for is_late in (True, False))


def _stops(image: Image, seed: int, raises_late: bool) -> bool:
    rng, machine = random.Random(seed), TagMachine(checks=False)
    left = program_order(image)
    while ready := [one for one in left if machine.is_ready(one)]:
        early = [one for one in ready if not one[0].sets] if raises_late else []
        instance = rng.choice(early or ready)
        machine.complete(instance)
        left.remove(instance)
    return bool(left)


def blocks_for_ever(image: Image) -> bool:
    """Whether an instance finds its waits open when all before it in the program are over."""
    machine = TagMachine(checks=False)
    for instance in program_order(image):
        if not machine.is_ready(instance):
            return True
        machine.complete(instance)
    return False


def ordered_conflicts(image: Image, ordered: set[tuple[Key, Key]]) -> Iterator[tuple[Key, Key]]:
    """Pairs of tasks that the plan orders and that touch the same bytes, one of them writing."""
    touched: dict[Key, tuple[set[tuple[str, int]], set[tuple[str, int]]]] = {}
    for block, counters in program_order(image):
        if block.kind == "task":
            reads = {b for o in block.inputs if o for b in _bytes(o, counters)}
            writes = {b for o in block.outputs for b in _bytes(o, counters)}
            touched[block.position, counters] = (reads, writes)
    for first, second in combinations(touched, 2):
        (reads, writes), (others, written) = touched[first], touched[second]
        if (first, second) in ordered and (writes & (others | written) or reads & written):
            yield first, second


def _some_run_loses(image: Image, conflicts: list[tuple[Key, Key]]) -> bool:
    """Whether the second of a pair completes in one of some runs without the first."""
    without: dict[Key, set[Key]] = {}
    for first, second in conflicts:
        if first not in without:
            runs = [run_without(image, first, checks=False, seed=s) for s in SEEDS]
            without[first] = set().union(*runs)
        if second in without[first]:
            return True
    return False


def _bytes(operand: Operand, counters: tuple[int, ...]) -> set[tuple[str, int]]:
    """Every byte of an operand whose elements are bytes."""
    assert operand.elem in ("i8", "u8")
    start = value(operand.address, counters)
    strides = operand.strides or [prod(operand.dims[at + 1 :]) for at in range(len(operand.dims))]
    places = product(*(range(dim) for dim in operand.dims))
    offsets = (sum(i * s for i, s in zip(place, strides, strict=True)) for place in places)
    return {(operand.memory, start + offset) for offset in offsets}

"""Order without clocks: what is proved holds in every order of small images, and all is decided."""

from __future__ import annotations

import random
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.bind.pipeline import bind_plan
from nacre.tcb.image import Block, Image, TagSet
from nacre.tcb.machine.instances import unroll
from nacre.tcbcheck.open_order import OpenOrder
from nacre.tcbcheck.tag_order import Ordering, order_by_tags
from nacre.tcbcheck.tally import Tally
from tests.bind.programs import PROGRAMS, checked
from tests.effort import scaled
from tests.tcb.machine.images import after, image, stream, tag
from tests.tcbcheck.every_order import TooManyStatesError, every_order
from tests.tcbcheck.mutations import ORDER_MUTATIONS, mutate

TAGS = 3
seeds = st.integers(0, 1 << 32)


def random_joins(rng: random.Random) -> Image:
    """Blocks that wait for what those before them have counted, and raise tags now and then."""
    counts = [0] * TAGS
    blocks: list[Block] = []
    for position in range(rng.randint(3, 8)):
        waited = [at for at in range(TAGS) if counts[at] and rng.random() < 0.5]
        waits = tuple(after(at, rng.randint(1, counts[at])) for at in waited)
        sets: tuple[TagSet, ...] = ()
        if rng.random() < 0.3:
            at, least = rng.randrange(TAGS), rng.randint(1, 4)
            sets = (TagSet(tag(at), 1, least),)
            counts[at] = max(counts[at], least)
        signalled = rng.randrange(TAGS) if rng.random() < 0.7 else None
        if signalled is not None:
            counts[signalled] += 1
        signal = None if signalled is None else tag(signalled)
        blocks.append(Block("join", position, waits=waits, signal=signal, sets=sets))
    return image(stream(*blocks))


def pairs(count: int) -> list[tuple[int, int]]:
    return [(a, b) for a in range(count) for b in range(count) if a != b]


def require_truth(made: Image) -> tuple[int, int]:
    """Nothing is proved that does not hold; how many questions are open, and how many there are."""
    truth, order = every_order(made), OpenOrder(unroll(made))
    undecided = 0
    for pair in pairs(len(truth.blocks)):
        is_before, is_open = order.before(*pair), order.is_open(*pair)
        assert not is_before or pair not in truth.starts_before
        assert not is_open or pair in truth.starts_before
        undecided += not is_before and not is_open
    stuck = order.find_stuck()
    assert not stuck or truth.can_stop
    assert not order.is_free_of_stops or not truth.can_stop
    undecided += not stuck and not order.is_free_of_stops
    return undecided, len(pairs(len(truth.blocks))) + 1


@settings(max_examples=scaled(300), deadline=None)
@given(seeds)
def test_nothing_is_proved_that_does_not_hold_in_every_order(seed: int) -> None:
    require_truth(random_joins(random.Random(seed)))


def test_nearly_everything_about_blocks_at_random_is_decided() -> None:
    rng = random.Random(1)
    found = [require_truth(random_joins(rng)) for _ in range(scaled(500))]
    assert sum(undecided for undecided, _ in found) <= 0.01 * sum(asked for _, asked in found)


def require_equal_columns(order: Ordering, count: int, rng: random.Random) -> None:
    """Asked for many at a time, in whatever order, the answers are those of one at a time."""
    firsts = np.array([rng.randrange(count) for _ in range(rng.randint(1, 2 * count))])
    columns = order.columns(firsts)
    for second in rng.sample(range(count), count):
        low = rng.randrange(len(firsts))
        expected = [order.before(first, second) for first in firsts[low:].tolist()]
        assert columns.before(second, slice(low, len(firsts))).tolist() == expected


@settings(max_examples=scaled(100), deadline=None)
@given(seeds)
def test_many_pairs_at_a_time_are_ordered_as_one_is(seed: int) -> None:
    rng = random.Random(seed)
    instances = unroll(random_joins(rng))
    require_equal_columns(OpenOrder(instances), instances.count, rng)


@pytest.mark.parametrize("name", PROGRAMS)
def test_columns_of_clocks_are_those_of_pairs(name: str) -> None:
    plan, device = checked(PROGRAMS[name])
    instances = unroll(bind_plan(plan, "p", device).image)
    for order in (order_by_tags(instances), OpenOrder(instances)):
        require_equal_columns(order, instances.count, random.Random(name))


@settings(max_examples=scaled(300), deadline=None)
@given(seeds)
def test_no_queue_that_is_proved_waits_for_what_stands_behind_it(seed: int) -> None:
    made = random_joins(random.Random(seed))
    if OpenOrder(unroll(made), has_queues=True).is_free_of_stops:
        assert not every_order(made).first_can_wait


def test_a_block_that_only_those_behind_it_free_is_no_proof_with_queues() -> None:
    raised = Block("join", 0, sets=(TagSet(tag(0), 1, 2),))
    lost = Block("join", 1, signal=tag(0))  # its signal comes before the raise, or after
    waiting = Block("join", 2, waits=(after(0, 3),))
    behind = [Block("join", position, signal=tag(0)) for position in (3, 4)]
    instances = unroll(image(stream(raised, lost, waiting, *behind)))
    assert OpenOrder(instances).is_free_of_stops
    assert not OpenOrder(instances, has_queues=True).is_free_of_stops


@pytest.mark.parametrize("name", ["flat", "loop"])
@pytest.mark.parametrize("mutation", ORDER_MUTATIONS, ids=lambda m: m.__name__)
def test_everything_about_mutants_is_decided(name: str, mutation: object) -> None:
    plan, device = checked(PROGRAMS[name])
    bound = bind_plan(plan, "p", device).image
    rng = random.Random(f"{name} {mutation}")
    for _ in range(scaled(10)):
        mutant = mutate(bound, mutation, rng)  # type: ignore[arg-type]
        if mutant is not None and not order_by_tags(unroll(mutant)).stuck:
            with suppress(TooManyStatesError):
                assert require_truth(mutant)[0] == 0


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_image_in_order_has_the_order_of_its_clocks(name: str) -> None:
    plan, device = checked(PROGRAMS[name])
    instances = unroll(bind_plan(plan, "p", device).image)
    clocks, order = order_by_tags(instances), OpenOrder(instances)
    assert order.is_free_of_stops
    assert not order.races
    for first, second in pairs(instances.count):
        if clocks.signalled[first][0] >= 0:  # else clocks do not know when it is over
            assert order.before(first, second) == clocks.before(first, second)


@given(st.lists(st.tuples(st.integers(0, 255), st.integers(0, 9))), st.integers(-1, 60))
def test_a_tally_counts_the_sets_of_each_number(sets: list[tuple[int, int]], least: int) -> None:
    tally = Tally()
    for one, times in sets:
        tally.add(one, times)
    counts = [sum(times for one, times in sets if one >> n & 1) for n in range(8)]
    expected = sum(1 << n for n, count in enumerate(counts) if count >= least)
    assert tally.at_least(least, 255) == expected

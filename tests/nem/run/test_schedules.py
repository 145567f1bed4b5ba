"""Schedules: the sliding window of loops, and orders that were recorded."""

from __future__ import annotations

import random
import re
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.nem.run.sessions.schedules import RandomOrder
from nacre.nem.run.sessions.session import Session
from neminterp import NemInterpreter
from tests.effort import scaled
from tests.nem.plan.mutants import pipeline
from tests.nem.run.programs import Items, contents, loaded, runnable, stored

pytestmark = pytest.mark.sampled(2)  # together they take long

seeds = st.integers(0, 1 << 32)
few = settings(max_examples=scaled(25), suppress_health_check=[HealthCheck.filter_too_much])

TRIPS = 6


def tiled(window: int | None, trips: int = TRIPS) -> str:
    """A loop whose iterations touch nothing in common."""
    decorator = "" if window is None else f" @max_in_flight({window})"
    return (
        "buffer A : L1 (size=64)\nbuffer B : L1 (size=64)\nbuffer C : L1 (size=64)\n"
        f"loop i in [0..{trips - 1}]{decorator}:\n"
        "    t0 = transfer.async(dst=region(B, i * 4, 4), src=region(A, i * 4, 4))\n"
        "    t1 = transfer.async(dst=region(C, i * 4, 4), src=region(B, i * 4, 4), deps=[t0])\n"
        "    t2 = transfer.async(dst=region(C, i * 4 + 32, 4), src=region(A, i * 4 + 32, 4))\n"
        "endloop\n"
    )


def ordered(text: str, seed: int) -> list[tuple[str, int]]:
    """Tasks and iterations in the order of a random run."""
    interpreter = NemInterpreter()
    interpreter.set_scheduling("random", seed)
    program = interpreter.load_string(text)
    result = interpreter.run(program, contents_of(text))
    assert result.status == "completed"
    assert result.session is not None
    matches = [re.fullmatch(r"(\w+)\[(\d+)\]", name) for name in result.session.order]
    return [(match[1], int(match[2])) for match in matches if match is not None]


def contents_of(text: str) -> dict[str, bytes]:
    rng = random.Random(1)
    sizes = re.findall(r"buffer (\w+) : \w+ \(size=(\d+)\)", text)
    return {name: rng.randbytes(int(size)) for name, size in sizes}


@pytest.mark.parametrize("window", [None, 1, 2, 3, 5, 100])
def test_an_iteration_starts_when_all_that_lie_a_window_back_are_complete(
    window: int | None,
) -> None:
    width = window or 1
    for seed in range(20):
        done: dict[int, int] = dict.fromkeys(range(TRIPS), 0)
        order = ordered(tiled(window), seed)
        assert len(order) == 3 * TRIPS
        for _, iteration in order:
            assert all(done[earlier] == 3 for earlier in range(iteration - width + 1))
            done[iteration] += 1


@pytest.mark.parametrize(("window", "expected"), [(1, False), (2, True), (4, True)])
def test_within_the_window_a_later_iteration_may_complete_first(
    window: int, expected: bool
) -> None:
    overtaken = False
    for seed in range(20):
        order = ordered(tiled(window), seed)
        last = {iteration: place for place, (_, iteration) in enumerate(order)}
        overtaken |= any(last[later] < last[earlier] for earlier, later in pairwise(range(TRIPS)))
    assert overtaken == expected


@pytest.mark.parametrize("window", [2, 3, 4])
def test_a_window_is_used_to_its_full_width(window: int) -> None:
    widest = 0
    for seed in range(40):
        done: dict[int, int] = dict.fromkeys(range(TRIPS), 0)
        for _, iteration in ordered(tiled(window), seed):
            done[iteration] += 1
            begun = [i for i in done if 0 < done[i] < 3]
            widest = max(widest, len(begun))
    assert widest == window


def test_an_inner_loop_has_a_window_in_every_iteration_of_the_outer_one() -> None:
    text = (
        "buffer A : L1 (size=64)\nbuffer B : L1 (size=64)\n"
        "loop i in [0..2] @max_in_flight(2):\n"
        "    loop j in [0..3]:\n"
        "        t0 = transfer.async(dst=region(B, i * 16 + j * 4, 4), src=region(A, 0, 4))\n"
        "    endloop\n"
        "endloop\n"
    )
    interpreter = NemInterpreter()
    program = interpreter.load_string(text)
    interleaved = False
    for seed in range(20):
        interpreter.set_scheduling("random", seed)
        session = interpreter.start(program, contents_of(text))
        session.run()
        order = [tuple(map(int, re.findall(r"\d+", name[2:]))) for name in session.order]
        for i in range(3):
            assert [j for k, j in order if k == i] == [0, 1, 2, 3]
        # Iteration 2 of the outer loop waits for all of iteration 0.
        assert order.index((2, 0)) > order.index((0, 3))
        interleaved |= order.index((1, 0)) < order.index((0, 3))
    assert interleaved


def run(items: Items, seed: int) -> Session:
    interpreter = NemInterpreter()
    interpreter.set_scheduling("random", seed)
    result = interpreter.run(loaded(items, interpreter), contents(seed), allow=["HAZ"])
    assert result.session is not None
    return result.session


def again(items: Items, seed: int, order: list[str]) -> Session:
    interpreter = NemInterpreter()
    program = loaded(items, interpreter)
    result = interpreter.run(program, contents(seed), order=order, allow=["HAZ"])
    assert result.session is not None
    return result.session


@few
@given(st.one_of(runnable(), runnable(racy=True)), seeds)
def test_a_recorded_order_runs_so_again(items: Items, seed: int) -> None:
    first = run(items, seed)
    second = again(items, seed, first.order)
    assert second.status == "finished"
    assert second.order == first.order
    assert stored(second) == stored(first)


@few
@given(runnable(), seeds)
def test_the_rest_of_a_recorded_order_follows_in_program_order(items: Items, seed: int) -> None:
    first = run(items, seed)
    part = first.order[: len(first.order) // 2]
    second = again(items, seed, part)
    assert second.status == "finished"
    assert second.order[: len(part)] == part
    steps = [second.steps.find_instance(name) for name in second.order[len(part) :]]
    assert stored(second) == stored(first)
    assert sorted(second.order) == sorted(first.order)
    # Program order is legal from any point: a later step never has to come first.
    assert steps == sorted(steps, key=lambda step: step or 0)


CHAIN = """\
buffer A : L1 (size=8)
buffer B : L1 (size=8)
buffer C : L1 (size=8)
t0 = transfer.async(dst=region(B, 0, 8), src=region(A, 0, 8))
t1 = transfer.async(dst=region(C, 0, 8), src=region(B, 0, 8), deps=[t0])
wait(t1)
loop i in [0..2]:
    t2 = transfer.async(dst=region(A, i, 1), src=region(C, i, 1))
endloop
"""
INPUTS = {"A": b"abcdefgh", "B": bytes(8), "C": bytes(8)}


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (["t1"], "step 1 of the order is `t1`, which must wait for tasks that have not run"),
        (["t0", "t0"], "step 2 of the order is `t0`, which has run already"),
        (["t0", "wait@6"], "step 2 of the order is `wait@6`, which must wait for tasks"),
        (
            ["t0", "t1", "wait@6", "t2[1]"],
            "step 4 of the order is `t2[1]`, which must wait for tasks that have not run",
        ),
    ],
)
@pytest.mark.parametrize("by_steps", [False, True])
def test_an_order_that_is_not_legal_stops_the_run(
    order: list[str], message: str, by_steps: bool
) -> None:
    interpreter = NemInterpreter()
    session = interpreter.start(interpreter.load_string(CHAIN), INPUTS, order=order)
    if by_steps:
        results = session.step(20)
        assert [result.status for result in results] == ["completed"] * (len(order) - 1) + ["error"]
    else:
        assert session.run().status == "error"
    assert session.status == "error"
    assert session.order == order[:-1]
    (found,) = session.diagnostics
    assert (found.code, found.severity) == ("RUN08", "error")
    assert message in found.message


@pytest.mark.parametrize("name", ["t9", "t2", "t2[3]", "t0[0]", "t2[0,0]", "wait", "", "t2["])
def test_an_order_that_names_something_else_is_refused(name: str) -> None:
    interpreter = NemInterpreter()
    program = interpreter.load_string(CHAIN)
    with pytest.raises(InputError, match="no task or wait") as caught:
        interpreter.start(program, INPUTS, order=["t0", name])
    assert [d.code for d in caught.value.diagnostics] == ["RUN08"]


def test_a_name_that_sibling_loops_share_means_each_in_turn() -> None:
    text = (
        "buffer A : L1 (size=8)\nbuffer B : L1 (size=8)\n"
        "loop i in [0..1]:\n"
        "    t0 = transfer.async(dst=region(B, i, 1), src=region(A, i, 1))\n"
        "endloop\n"
        "loop i in [0..1] @max_in_flight(2):\n"
        "    t0 = transfer.async(dst=region(B, i + 2, 1), src=region(A, i + 2, 1))\n"
        "endloop\n"
    )
    interpreter = NemInterpreter()
    program = interpreter.load_string(text)
    order = ["t0[0]", "t0[1]", "t0[1]", "t0[0]"]
    session = interpreter.start(program, {"A": b"abcdefgh", "B": b"........"}, order=order)
    session.step(3)
    assert session.read_buffer("B") == b"ab.d...."
    assert session.run().status == "completed"
    assert session.order == order


def test_random_choices_are_spread_evenly() -> None:
    class Ready:
        ready = (0, 1, 2, 3)

    counts = dict.fromkeys(range(4), 0)
    for seed in range(100):
        for taken in range(40):
            counts[RandomOrder(seed).choose(Ready(), taken)] += 1  # type: ignore[arg-type, index]
    assert all(850 < count < 1150 for count in counts.values()), counts


def test_pipelines_replay_too() -> None:
    for seed in range(10):
        items = pipeline(random.Random(seed))
        first = run(items, seed)
        assert stored(again(items, seed, first.order)) == stored(first)

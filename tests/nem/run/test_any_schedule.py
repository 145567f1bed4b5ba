"""A program without races leaves the same bytes whatever order its tasks run in."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nacre.nem.api.programs import LoadedProgram
from nacre.nem.run.sessions.session import Session
from neminterp import NemInterpreter
from tests.effort import scaled
from tests.nem.plan.mutants import pipeline
from tests.nem.plan.sketches import Loop, Task, read
from tests.nem.run.programs import (
    Contents,
    Items,
    contents,
    instance_name,
    loaded,
    naive_run,
    runnable,
    stored,
)

pytestmark = pytest.mark.sampled(2)  # together they take long

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.nem"))
IS_FULL = os.environ.get("NACRE_HYPOTHESIS_PROFILE") == "full"
seeds = st.integers(0, 1 << 32)
few = settings(max_examples=scaled(25), suppress_health_check=[HealthCheck.filter_too_much])
many = settings(max_examples=scaled(200), suppress_health_check=[HealthCheck.filter_too_much])


def finished(
    interpreter: NemInterpreter, program: LoadedProgram, inputs: Contents, seed: int | None
) -> Session:
    """A session that has run to its end, in program order or at random."""
    interpreter.set_scheduling("deterministic" if seed is None else "random", seed)
    result = interpreter.run(program, inputs)
    assert result.status == "completed", result.diagnostics
    assert result.session is not None
    return result.session


def require_same_bytes(items: Items, seed: int, schedules: int) -> None:
    interpreter = NemInterpreter()
    program, inputs = loaded(items, interpreter), contents(seed)
    expected = stored(finished(interpreter, program, inputs, None))
    assert expected == naive_run(items, inputs)
    for number in range(schedules):
        session = finished(interpreter, program, inputs, seed + number)
        assert stored(session) == expected, session.order


@few
@given(runnable(), seeds)
def test_random_programs_give_the_bytes_of_a_naive_run_in_any_order(
    items: Items, seed: int
) -> None:
    require_same_bytes(items, seed, 10)


@few
@given(seeds)
def test_pipelines_give_the_bytes_of_a_naive_run_in_any_order(seed: int) -> None:
    require_same_bytes(pipeline(random.Random(seed)), seed, 10)


@pytest.mark.full
@many
@given(runnable(most_items=8), seeds)
def test_many_random_programs_under_many_schedules(items: Items, seed: int) -> None:
    require_same_bytes(items, seed, 50)


@pytest.mark.full
@many
@given(seeds)
def test_many_pipelines_under_many_schedules(seed: int) -> None:
    require_same_bytes(pipeline(random.Random(seed)), seed, 50)


def ancestors(items: Items) -> dict[str, set[str]]:
    """By instance, those that happen before it, by brute force."""
    reading = read(items)
    return {
        instance_name(later): {
            instance_name(earlier)
            for earlier in reading.instances
            if reading.is_before(earlier, later)
        }
        for later in reading.instances
    }


@few
@given(runnable(most_items=6), seeds)
def test_every_order_that_is_taken_respects_what_happens_before_what(
    items: Items, seed: int
) -> None:
    interpreter = NemInterpreter()
    program, before = loaded(items, interpreter), ancestors(items)
    for number in (None, *range(seed, seed + 10)):
        done: set[str] = set()
        tasks = finished(interpreter, program, contents(seed), number).get_completed_tasks()
        assert sorted(tasks) == sorted(before)
        for name in tasks:
            assert before[name] <= done, (name, before[name] - done)
            done.add(name)


@few
@given(runnable(racy=True), seeds)
def test_orders_of_racy_programs_are_legal_too(items: Items, seed: int) -> None:
    interpreter = NemInterpreter()
    program, before = loaded(items, interpreter), ancestors(items)
    interpreter.set_scheduling("random", seed)
    result = interpreter.run(program, contents(seed), allow=["HAZ"])
    assert result.session is not None
    tasks = result.session.get_completed_tasks()
    assert stored(result.session) == naive_run(items, contents(seed), tasks)
    done: set[str] = set()
    for name in tasks:
        assert before[name] <= done
        done.add(name)
    assert len(done) == len(before)


@few
@given(runnable(most_items=4), seeds)
def test_ready_is_what_has_every_ancestor_behind_it(items: Items, seed: int) -> None:
    interpreter = NemInterpreter()
    interpreter.set_scheduling("random", seed)
    before = ancestors(items)
    session = interpreter.start(loaded(items, interpreter), contents(seed))
    # Waits are steps of their own, which a reading of tasks cannot see.
    has_waits = any(name.startswith("wait") for name in all_steps(session))
    while session.status != "finished":
        done = set(session.get_completed_tasks())
        able = {name for name, needed in before.items() if name not in done and needed <= done}
        ready = set(session.get_ready_tasks())
        assert ready <= able if has_waits else ready == able
        session.step()


def all_steps(session: Session) -> list[str]:
    return [session.steps.name(step) for step in range(session.steps.count)]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_give_the_same_bytes_in_any_order(path: Path) -> None:
    interpreter = NemInterpreter()
    program = interpreter.load(path)
    rng = random.Random(path.stem)
    inputs = {b.name: rng.randbytes(b.size or 0) for b in program.plan.program.buffers}
    expected = stored(finished(interpreter, program, inputs, None))
    orders = set()
    for seed in range(50 if IS_FULL else 10):
        session = finished(interpreter, program, inputs, seed)
        assert stored(session) == expected
        orders.add(tuple(session.order))
    assert len(orders) > 1, "the schedules did not differ"


def test_random_schedules_reach_every_order_of_three_free_tasks() -> None:
    places = [
        "transfer.async(dst=region(B, 0, 1), src=region(A, 0, 1))",
        "transfer.async(dst=region(B, 1, 1), src=region(A, 1, 1))",
        "transfer.async(dst=region(B, 2, 1), src=region(A, 2, 1))",
    ]
    lines = ["buffer A : L1 (size=4)", "buffer B : L1 (size=4)"]
    lines += [f"t{n} = {place}" for n, place in enumerate(places)]
    interpreter = NemInterpreter()
    program = interpreter.load_string("\n".join(lines) + "\n")
    inputs = {"A": b"abcd", "B": b"...."}
    found = {tuple(finished(interpreter, program, inputs, seed).order) for seed in range(100)}
    assert len(found) == 6


def test_one_seed_always_gives_the_same_order() -> None:
    interpreter = NemInterpreter()
    items = pipeline(random.Random(5))
    program = loaded(items, interpreter)
    orders = [finished(interpreter, program, contents(0), 7).order for _ in range(3)]
    assert orders[0] == orders[1] == orders[2]


@pytest.mark.full
def test_the_programs_of_these_tests_do_run_side_by_side() -> None:
    """Otherwise the tests above would prove nothing."""
    interpreter = NemInterpreter()
    several = 0
    for seed in range(30):
        items = pipeline(random.Random(seed))
        assert any(isinstance(item, Loop | Task) for item in items)
        program = loaded(items, interpreter)
        orders = {tuple(finished(interpreter, program, contents(0), s).order) for s in range(5)}
        several += len(orders) > 1
    assert several > 15

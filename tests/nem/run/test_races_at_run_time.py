"""Races met while running are races that the checker proves, and never anything else."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nacre.base.diagnostics import Diagnostic
from nacre.nem.api.programs import LoadedProgram
from nacre.nem.api.replay import witness_orders, witness_steps
from nacre.nem.run.sessions.steps import number_steps
from neminterp import NemInterpreter
from tests.effort import scaled
from tests.nem.plan.mutants import mutants, pipeline
from tests.nem.plan.sketches import hazards
from tests.nem.run.programs import Items, contents, loaded, runnable, text

pytestmark = pytest.mark.sampled(2)  # together they take long

Pair = frozenset[int]  # offsets of two statements in the text; one, where a task meets itself

seeds = st.integers(0, 1 << 32)
few = settings(max_examples=scaled(25), suppress_health_check=[HealthCheck.filter_too_much])


def met(
    interpreter: NemInterpreter, program: LoadedProgram, order: list[str] | None = None
) -> set[Pair]:
    """The pairs of statements between which a run meets races."""
    inputs = contents(1)
    result = interpreter.run(program, inputs, allow=["HAZ"], order=order, detect_races=True)
    assert result.status == "completed"
    assert {d.code for d in result.diagnostics} <= {"RUN07"}
    return {frozenset({d.span.start, d.related[0].span.start}) for d in result.diagnostics}


def positions(program: LoadedProgram, pair: frozenset[int]) -> Pair:
    """Positions of statements as offsets in the text."""
    tasks = program.plan.program.task_at
    return frozenset(tasks[position].node.start for position in pair)


def racing(items: Items, program: LoadedProgram) -> set[Pair]:
    """The pairs that race by brute force."""
    return {positions(program, pair) for pair, _ in hazards(items)}


def static(program: LoadedProgram) -> list[Diagnostic]:
    return [d for d in program.diagnostics if d.data is not None and "witness" in d.data]


@few
@given(runnable(), seeds)
def test_a_program_without_races_meets_none(items: Items, seed: int) -> None:
    interpreter = NemInterpreter()
    program = loaded(items, interpreter)
    assert met(interpreter, program) == set()
    for number in range(10):
        interpreter.set_scheduling("random", seed + number)
        assert met(interpreter, program) == set()


@few
@given(seeds)
def test_a_pipeline_meets_no_race(seed: int) -> None:
    interpreter = NemInterpreter()
    program = loaded(pipeline(random.Random(seed)), interpreter)
    for number in range(5):
        interpreter.set_scheduling("random", seed + number)
        assert met(interpreter, program) == set()


@pytest.mark.heavy("random programs, each run in many orders")
@few
@given(runnable(racy=True), seeds)
def test_what_is_met_is_what_the_checker_reports(items: Items, seed: int) -> None:
    interpreter = NemInterpreter()
    program = loaded(items, interpreter)
    expected = racing(items, program)
    found = met(interpreter, program)
    for number in range(10):
        interpreter.set_scheduling("random", seed + number)
        found |= met(interpreter, program)
    assert found <= expected, text(items)
    assert found, "no schedule met any of the races"


@pytest.mark.heavy("random programs, each run in many orders")
@few
@given(runnable(racy=True))
def test_the_order_of_a_witness_always_meets_its_race(items: Items) -> None:
    require_witnesses_met(items)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(8))
def test_the_order_of_a_mutants_witness_always_meets_its_race(seed: int) -> None:
    rng = random.Random(seed)
    broken = [m for m in mutants(pipeline(rng), rng) if hazards(m)][:3]
    assert broken
    for items in broken:
        require_witnesses_met(items)


def require_witnesses_met(items: Items) -> None:
    interpreter = NemInterpreter()
    program = loaded(items, interpreter)
    steps = number_steps(program.plan)
    found = static(program)
    assert found
    for diagnostic in found:
        assert diagnostic.data is not None
        witness = diagnostic.data["witness"]
        pair = positions(program, frozenset(entry["position"] for entry in witness))
        for order in witness_orders(steps, *witness_steps(diagnostic, steps)):
            assert pair in met(interpreter, program, order), (order, text(items))


ORDERED_BY_A_WAIT = """\
buffer A : L1 (size=8)
buffer B : L1 (size=8)
t0 = transfer.async(dst=region(B, 0, 8), src=region(A, 0, 8))
wait(t0)
t1 = transfer.async(dst=region(A, 0, 8), src=region(B, 0, 8))
"""


def test_a_wait_orders_what_follows_it() -> None:
    interpreter = NemInterpreter()
    program = interpreter.load_string(ORDERED_BY_A_WAIT)
    inputs = {"A": b"abcdefgh", "B": b"12345678"}
    assert interpreter.run(program, inputs, detect_races=True).diagnostics == ()


def test_a_race_names_both_tasks_and_the_buffer() -> None:
    interpreter = NemInterpreter()
    program = interpreter.load_string(ORDERED_BY_A_WAIT.replace("wait(t0)\n", ""))
    inputs = {"A": b"abcdefgh", "B": b"12345678"}
    result = interpreter.run(program, inputs, allow=["HAZ"], detect_races=True)
    assert result.status == "completed"
    (found,) = result.diagnostics
    assert (found.code, found.severity) == ("RUN07", "error")
    assert found.message == ("`t1` reads bytes of `B` that `t0` writes, and nothing made it wait")
    assert [related.message for related in found.related] == ["`t0`"]


def test_steps_taken_back_are_no_party_to_a_race() -> None:
    interpreter = NemInterpreter()
    program = interpreter.load_string(ORDERED_BY_A_WAIT)
    inputs = {"A": b"abcdefgh", "B": b"12345678"}
    session = interpreter.start(program, inputs, detect_races=True)
    for count in (3, 2, 1, 3):
        session.step(3)
        session.step_back(count)
    session.run()
    assert session.diagnostics == ()

"""Images broken on purpose: the verifier refuses those that can go wrong, and no other."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from nacre.bind.pipeline import bind_plan
from nacre.tcbcheck.verify import verify_image
from neminterp import NemInterpreter
from tests.bind.programs import PROGRAMS, checked
from tests.bind.test_order import pairs
from tests.effort import scaled
from tests.nem.run.programs import Items, loaded, runnable
from tests.tcbcheck.mutations import ORDER_MUTATIONS, move_operand, mutate
from tests.tcbcheck.naive_verdict import is_right, verdict

pytestmark = pytest.mark.sampled(2)  # together they take long

# Trying many orders of the larger two takes a minute.
LARGE = ("nest", "engines")
SMALL = [pytest.param(name, marks=pytest.mark.full if name in LARGE else ()) for name in PROGRAMS]
MUTANTS = scaled(6)  # of a program and a kind


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_bound_program_is_proved(name: str) -> None:
    plan, device = checked(PROGRAMS[name])
    image = bind_plan(plan, "p", device).image
    assert verify_image(plan, image) == []


@pytest.mark.parametrize("mutation", ORDER_MUTATIONS, ids=lambda m: m.__name__)
@pytest.mark.parametrize("name", SMALL)
def test_the_verdict_on_a_mutant_is_that_of_trying(name: str, mutation: object) -> None:
    plan, device = checked(PROGRAMS[name])
    image = bind_plan(plan, "p", device).image
    ordered = pairs(plan)
    rng = random.Random(f"{name} {mutation}")
    made = (mutate(image, mutation, rng) for _ in range(MUTANTS))  # type: ignore[arg-type]
    for mutant in made:
        if mutant is not None:
            codes = {finding.code for finding in verify_image(plan, mutant)}
            assert is_right(codes, verdict(mutant, ordered))


@pytest.mark.parametrize("name", PROGRAMS)
def test_another_address_is_seen(name: str) -> None:
    plan, device = checked(PROGRAMS[name])
    image = bind_plan(plan, "p", device).image
    rng = random.Random(name)
    mutants = [m for m in (mutate(image, move_operand, rng) for _ in range(12)) if m]
    assert mutants
    for mutant in mutants:
        assert {finding.code for finding in verify_image(plan, mutant)} == {"TCB82"}


@settings(
    max_examples=scaled(120),
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
    deadline=None,
)
@given(runnable(most_items=4), st.integers(0, 1 << 32))
def test_mutants_of_random_programs(items: Items, seed: int) -> None:
    program = loaded(items, NemInterpreter(device="npm_lite"))
    plan, rng = program.plan, random.Random(seed)
    assume(plan.instances <= 30)
    image = bind_plan(plan, "p", program.device).image
    ordered = pairs(plan)
    for _ in range(5):
        mutant = mutate(image, rng.choice(ORDER_MUTATIONS), rng)
        if mutant is not None:
            codes = {finding.code for finding in verify_image(plan, mutant)}
            assert is_right(codes, verdict(mutant, ordered))

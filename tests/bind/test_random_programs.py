"""Random programs, bound in several ways: proved, in exactly the plan's order, the same bytes."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.bind.pipeline import bind_plan
from nacre.bind.request import BindOptions
from nacre.bind.uarch.builtin import load_uarch
from nacre.nem.api.programs import LoadedProgram
from nacre.tcb.image import Image
from nacre.tcb.machine.run import run_image
from nacre.tcbcheck.verify import verify_image
from neminterp import NemInterpreter
from tests.bind.interleavings import run_by_tags, run_without
from tests.bind.test_order import pairs
from tests.bind.test_tag_pressure import tags_used, uarch_of
from tests.effort import scaled
from tests.nem.plan.fusing_sketches import INPUTS, draw_body
from tests.nem.run.programs import Items, contents, loaded, runnable, stored

pytestmark = pytest.mark.sampled(2)  # together they take long

seeds = st.integers(0, 1 << 32)
_PLAIN = [HealthCheck.filter_too_much, HealthCheck.too_slow]
few = settings(max_examples=scaled(60), suppress_health_check=_PLAIN, deadline=None)
DEVICE = "npm_lite"


def program_of(items: Items) -> LoadedProgram:
    return loaded(items, NemInterpreter(device=DEVICE))


@few
@given(runnable())
def test_tags_order_exactly_what_the_plan_orders(items: Items) -> None:
    program = program_of(items)
    image = bind_plan(program.plan, "p", program.device).image
    assert verify_image(program.plan, image) == []
    keys = run_by_tags(image, 0)
    if len(keys) <= 40:
        ordered = pairs(program.plan)
        for key in keys:
            after = set(keys) - run_without(image, key) - {key}
            assert after == {v for u, v in ordered if u == key}


@few
@given(runnable(), seeds, st.integers(2, 8))
def test_few_tags_keep_the_meaning(items: Items, seed: int, most: int) -> None:
    program = program_of(items)
    options = BindOptions(uarch_of(most), may_serialise=True)
    with suppress(InputError):  # of the least tags not even one thing at a time will do
        image = bind_plan(program.plan, "p", program.device, options).image
        require_same_meaning(program, image, seed, most)


def require_same_meaning(program: LoadedProgram, image: Image, seed: int, most: int) -> None:
    assert max(tags_used(image).values(), default=0) <= most
    assert verify_image(program.plan, image) == []
    require_bytes_of_nem(program, image, seed)


def require_bytes_of_nem(program: LoadedProgram, image: Image, seed: int) -> None:
    interpreter = NemInterpreter(device=DEVICE)
    inputs = contents(seed)
    result = interpreter.run(program, dict(inputs))
    assert result.session is not None
    expected = stored(result.session)
    for order in (None, seed, seed + 1):
        found = run_image(image, inputs, seed=order)
        assert found.status == "completed"
        assert {name: found.read(name) for name in expected} == expected


@pytest.mark.parametrize("number", range(scaled(60)))
def test_chains_keep_the_outputs(number: int) -> None:
    rng = random.Random(number)
    interpreter = NemInterpreter()
    program = interpreter.load_string(draw_body(rng).text)
    options = BindOptions(load_uarch("npm_lite", "npm_lite"), may_serialise=True)
    bound = bind_plan(program.plan, "p", program.device, options)
    assert verify_image(program.plan, bound.image) == []
    inputs = {name: rng.randbytes(size) for name, size in INPUTS.items()}
    result = interpreter.run(program, dict(inputs))
    assert result.session is not None
    for order in (None, number):
        found = run_image(bound.image, inputs, seed=order)
        assert found.status == "completed", found.diagnostics
        # What is streamed is never written: L1 may differ, what leaves it may not.
        assert found.read("O") == result.session.read_buffer("O")

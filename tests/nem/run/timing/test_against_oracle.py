"""The machine against a slow second opinion, on random programs and devices."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import scaled
from tests.nem.run.timing.oracle import Oracle
from tests.nem.run.timing.sketches import Sketch, program_text, scarce, sketches
from tests.nem.run.timing.timed import timed


def check(sketch: Sketch) -> None:
    """Every start, end, unit, engine and stall is the same."""
    items, machine = sketch
    text = program_text(items, machine)
    oracle = Oracle(items, machine)
    result = timed(text, machine.profile)
    assert result.status == ("deadlock" if oracle.waiting else "completed"), text
    assert len(result.waiting) == len(oracle.waiting), text
    tasks = list(result.tasks)
    assert len(tasks) == len(oracle.tasks)
    for found, expected in zip(tasks, oracle.tasks, strict=True):
        on_device = [unit for unit, _ in expected.units] == ["sDMA"]
        never = expected.start is None
        assert found["iteration"] == list(expected.iteration)
        assert (found["start"], found["end"], found["unit"], found["engine"]) == (
            -1 if never else expected.start,
            -1 if never else expected.end,
            "+".join(expected.places),
            None if on_device else expected.engine,
        ), f"{expected.name} of\n{text}"
        if not oracle.waiting:
            stall = oracle.stall(expected)
            assert found["stall"] == {
                "window": stall.window,
                "dependence": stall.dependence,
                "token": stall.token,
                "unit": stall.unit,
            }, f"{expected.name} of\n{text}"
    assert result.cycles == oracle.cycles, text


@given(sketches())
def test_random_programs_take_the_time_that_the_oracle_says(sketch: Sketch) -> None:
    check(sketch)


@given(scarce())
def test_few_tokens_take_the_time_that_the_oracle_says(sketch: Sketch) -> None:
    check(sketch)


@pytest.mark.full
@settings(max_examples=scaled(1000))
@given(st.one_of(sketches(), scarce()))
def test_a_thousand_programs_take_the_time_that_the_oracle_says(sketch: Sketch) -> None:
    check(sketch)

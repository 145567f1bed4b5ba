"""The event loop compiled gives the same columns as in plain Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from nacre.base.loops.machine_code import is_available
from nacre.nem.run.sessions.steps import number_steps
from nacre.nem.run.timing.profile import timing_profile
from nacre.nem.run.timing.timeline import Timeline, time_steps
from neminterp import NemInterpreter
from tests.effort import scaled
from tests.nem.run.timing.sketches import Figures, Sketch, program_text, sketches

pytestmark = [
    pytest.mark.full,  # compiling takes its time
    pytest.mark.skipif(not is_available(), reason="numba is not installed"),
]

EXAMPLES = sorted((Path(__file__).parents[4] / "examples").glob("*.nem"))
COLUMNS = ("ready", "token_at", "start", "end", "unit", "node_time")


def both(text: str, profile: Figures) -> tuple[Timeline, Timeline]:
    program = NemInterpreter().load_string(text)
    figures = timing_profile(program.device, profile)
    steps = number_steps(program.plan)
    plain, fast = (
        time_steps(steps, program.device, figures, compile=compile) for compile in (False, True)
    )
    return plain, fast


def assert_alike(plain: Timeline, fast: Timeline) -> None:
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(fast, name), getattr(plain, name), name)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_take_the_same_time_compiled(path: Path) -> None:
    program = NemInterpreter().load(path)
    figures = timing_profile(program.device)
    steps = number_steps(program.plan)
    plain = time_steps(steps, program.device, figures, compile=False)
    assert_alike(plain, time_steps(steps, program.device, figures, compile=True))


@settings(max_examples=scaled(200))
@given(sketches())
def test_random_programs_take_the_same_time_compiled(sketch: Sketch) -> None:
    items, machine = sketch
    assert_alike(*both(program_text(items, machine), machine.profile))


def test_a_program_without_tasks_is_compiled_too() -> None:
    plain, fast = both("program nothing:\n", {})
    assert plain.cycles == fast.cycles == 0

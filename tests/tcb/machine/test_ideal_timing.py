"""On ideal hardware an image takes the time that NEM's own machine gives it, task by task."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

from nacre.base.diagnostics import InputError
from nacre.nem.api.programs import LoadedProgram
from nacre.nem.run.sessions.steps import number_steps
from nacre.nem.run.timing.profile import timing_profile
from nacre.nem.run.timing.result import TimedResult
from nacre.nem.run.timing.timeline import time_steps
from nacre.tcb.machine.timing import ImageTiming, time_image
from tests.effort import scaled
from tests.nem.run.timing.sketches import Sketch, program_text, scarce, sketches
from tests.tcb.machine.bound import EXAMPLES, bound, example, loaded

pytestmark = pytest.mark.sampled(2)  # together they take long

Row = tuple[int, tuple[int, ...], int, int, tuple[str, ...]]


def image_rows(timing: ImageTiming) -> list[Row]:
    """Every task: its position, its counters, start, end, units."""
    return [
        (
            timing.instances.block_of(n).block.position,
            timing.instances.counters(n),
            int(timing.start[n]),
            int(timing.end[n]),
            timing.unit_names(n),
        )
        for n in timing.tasks.tolist()
    ]


def nem_rows(program: LoadedProgram) -> list[Row]:
    """The same as NEM's machine has it."""
    steps = number_steps(program.plan)
    timeline = time_steps(steps, program.device, timing_profile(program.device), compile=False)
    result = TimedResult(timeline)
    rows = []
    for step in range(steps.count):
        if steps.statement(step) in program.plan.program.tasks:
            grid = steps.grid(steps.statement(step))
            counters = tuple(int(column[steps.row[step]]) for column in grid.ordinals)
            units = tuple(result.unit_names(step))
            start, end = int(timeline.start[step]), int(timeline.end[step])
            rows.append((int(steps.position[step]), counters, start, end, units))
    return rows


def require_same_time(program: LoadedProgram) -> None:
    expected = nem_rows(program)
    if any(start < 0 for _, _, start, _, _ in expected):  # NEM's machine runs out of tokens
        with pytest.raises(InputError) as refused:
            bound(program)
        assert {finding.code for finding in refused.value.diagnostics} == {"BND04"}
        return
    timing = time_image(bound(program), compile=False)
    assert image_rows(timing) == expected


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_take_the_time_of_nem(path: Path) -> None:
    require_same_time(example(path))


def sketched(sketch: Sketch) -> LoadedProgram:
    program = loaded(program_text(*sketch), None)
    program.require_runnable(["HAZ", "DEC10"])
    return program


@settings(max_examples=scaled(150))
@given(sketches())
def test_random_programs_take_the_time_of_nem(sketch: Sketch) -> None:
    require_same_time(sketched(sketch))


@settings(max_examples=scaled(100))
@given(scarce())
def test_tokens_are_taken_and_released_as_nem_does(sketch: Sketch) -> None:
    require_same_time(sketched(sketch))

"""Programs bound to hardware with figures, chains and all: the same bytes, and an end in time."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.binding import bind
from nacre.tcb.machine.run import run_image
from nacre.tcb.machine.timing import time_image
from tests.effort import scaled
from tests.nem.plan.fusing_sketches import INPUTS, draw_body
from tests.nem.run.programs import stored
from tests.tcb.machine.bound import EXAMPLES, example, loaded, nem_session, random_contents


@pytest.mark.parametrize("uarch", ["npm4k", "nem_reference"])
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_leave_what_the_host_can_see(path: Path, uarch: str) -> None:
    program = example(path)
    bound = bind(program, uarch)
    image = bound.image
    inputs = random_contents(program, 5)
    expected = stored(nem_session(program, inputs))
    for seed in (None, 1, 2):
        result = run_image(image, inputs, seed=seed)
        assert result.status == "completed", result.diagnostics
        for port in image.ports:
            assert result.read(port.name) == expected[port.name]
    timing = bound.time()
    assert not timing.is_stuck, timing.diagnostics
    assert timing.cycles > 0


def require_outputs_of_nem(seed: int) -> int:
    """Bind a random program, run it in several orders, and time it; how much of it streams."""
    program = loaded(draw_body(random.Random(seed)).text, None)
    rng = np.random.default_rng(seed)
    inputs = {
        name: rng.normal(size=size // 2).astype(np.float16).tobytes()
        for name, size in INPUTS.items()
    }
    expected = stored(nem_session(program, inputs))
    image = bind(program, "nem_reference").image
    assert not time_image(image).is_stuck
    for number in (None, seed, seed + 1, seed + 2):
        result = run_image(image, inputs, seed=number)
        assert result.status == "completed", result.diagnostics
        assert result.read("O") == expected["O"]
    return sum(block.is_chained for stream in image.streams for block, _ in stream.blocks())


@settings(max_examples=scaled(60))
@given(st.integers(0, 1 << 32))
def test_values_that_stream_give_the_outputs_of_nem(seed: int) -> None:
    require_outputs_of_nem(seed)


def test_the_programs_of_these_tests_do_stream() -> None:
    assert sum(require_outputs_of_nem(seed) for seed in range(12)) > 3

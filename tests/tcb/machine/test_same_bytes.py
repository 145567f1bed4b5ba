"""Images leave the bytes that NEM's own machine leaves, in any order that tags allow."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.effort import scaled
from tests.nem.plan.mutants import pipeline
from tests.nem.run.programs import Items, contents, runnable, text
from tests.tcb.machine.bound import EXAMPLES, example, loaded, random_contents, require_same_bytes

seeds = st.integers(0, 1 << 32)
few = settings(max_examples=scaled(40), suppress_health_check=[HealthCheck.filter_too_much])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_leave_the_bytes_of_nem(path: Path) -> None:
    program = example(path)
    require_same_bytes(program, random_contents(program, 3), range(5))


@few
@given(runnable(), seeds)
def test_random_programs_leave_the_bytes_of_nem(items: Items, seed: int) -> None:
    require_same_bytes(loaded(text(items)), contents(seed), range(seed, seed + 6))


@few
@given(seeds)
def test_pipelines_leave_the_bytes_of_nem(seed: int) -> None:
    items = pipeline(random.Random(seed))
    require_same_bytes(loaded(text(items)), contents(seed), range(seed, seed + 6))

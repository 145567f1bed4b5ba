"""Files that are nearly right, some of the millions that `python -m tests.nac.mutants` tries."""

from __future__ import annotations

import random

import pytest

from tests.effort import scaled
from tests.nac.mutants import fate, mutated, seeds


@pytest.mark.fuzz
@pytest.mark.heavy("a file at a time is what is tried")
def test_mutated_files_are_refused_or_sound() -> None:
    draw = random.Random(28)
    files = [mutated(draw, draw.choice(seeds())) for _ in range(scaled(3000))]
    fates = {fate(data, is_run=draw.random() < 0.2) for data in files}
    assert {"sound", "runs"} <= fates
    assert len(fates) > 10, "refused for many reasons"


def test_files_before_they_are_changed_run() -> None:
    assert [fate(data, is_run=True) for data in seeds()] == ["runs"] * len(seeds())

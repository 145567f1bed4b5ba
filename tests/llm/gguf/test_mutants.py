"""GGUF files that are nearly right, some of those that `python -m tests.llm.gguf.mutants` tries."""

from __future__ import annotations

import random

import pytest

from tests.effort import scaled
from tests.llm.gguf.mutants import SEEDS, fate, mutated


@pytest.mark.fuzz
def test_mutated_files_are_refused_or_read() -> None:
    draw = random.Random(32)
    seeds = [seed() for seed in SEEDS]
    fates = {fate(mutated(draw, draw.choice(seeds))) for _ in range(scaled(2000))}
    assert "read" in fates
    assert len(fates) > 6, "refused for many reasons"


def test_files_before_they_are_changed_are_read() -> None:
    assert [fate(seed()) for seed in SEEDS] == ["read"] * len(SEEDS)

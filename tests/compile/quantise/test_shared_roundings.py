"""Plans of one model, compiled together: weights are rounded once, and plans stay the same."""

from __future__ import annotations

import numpy as np
import pytest

import nacre
from nacre.compile.quantise.weight_only import stage
from nacre.compile.quantise.weight_only.groups import RoundedWeights, round_to_nearest
from nacre.compile.quantise.weight_only.shared_roundings import share_roundings
from tests.compile.models import Array, linear_model

DEPTH, COLUMNS = 256, 80


@pytest.fixture
def rounded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The groups that weights were rounded in, one for each time."""
    seen: list[int] = []

    def watched(weights: Array, group: int, bits: int) -> RoundedWeights:
        seen.append(group)
        return round_to_nearest(weights, group, bits)

    monkeypatch.setattr(stage, "round_to_nearest", watched)
    return seen


def test_plans_that_share_roundings_round_once_and_are_as_if_alone(rounded: list[int]) -> None:
    models = [linear_model(rows, DEPTH, COLUMNS, bias=False, relu=False) for rows in (1, 24)]
    alone = [nacre.compile(model, "npm4k", "w4f16", group_size=32) for model in models]
    assert rounded == [32, 32]
    rounded.clear()
    with share_roundings():
        together = [nacre.compile(model, "npm4k", "w4f16", group_size=32) for model in models]
    assert rounded == [32]
    for one, other in zip(alone, together, strict=True):
        assert one.program == other.program
        assert one.weights == other.weights
        assert one.manifest == other.manifest


def test_what_is_rounded_in_other_ways_is_not_shared(rounded: list[int]) -> None:
    model = linear_model(1, DEPTH, COLUMNS, bias=False, relu=False)
    with share_roundings():
        for group in (32, 64):
            nacre.compile(model, "npm4k", "w4f16", group_size=group)
        nacre.compile(model, "npm4k", "w8f16", group_size=64)
    assert rounded == [32, 64, 64]
    nacre.compile(model, "npm4k", "w8f16", group_size=64)  # nothing is kept for later
    assert len(rounded) == 4


def test_losses_are_those_of_the_whole_weights() -> None:
    columns = stage._AT_A_TIME // DEPTH + 7  # of which one part is smaller
    weights = np.random.default_rng(3).normal(size=(columns, DEPTH)).astype(np.float16)
    grouped = round_to_nearest(weights, 64, 4)
    wide = weights.astype(np.float64)
    expected = 10 * np.log10(np.sum(wide**2) / np.sum((grouped.real() - wide) ** 2))
    assert stage._ratio(weights, grouped) == pytest.approx(expected, rel=1e-12)

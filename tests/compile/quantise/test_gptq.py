"""Weights rounded for data: beside what each row of it loses, and the nearest integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nacre
from nacre.base.diagnostics import InputError
from nacre.compile.quantise.weight_only.calibrated import round_weights
from nacre.compile.quantise.weight_only.groups import RoundedWeights, round_to_nearest
from nacre.compile.quantise_stages import QUANTISE_STAGES
from tests.compile.models import Array, linear_model, values

DEPTH = 64


def correlated_rows(count: int, seed: int, depth: int = DEPTH) -> Array:
    """Rows whose elements say much of each other, as those of a network do."""
    made: Array = values((count, 8), seed) @ values((8, depth), 1) + values(
        (count, depth), seed, 0.1
    )
    return made.astype(np.float32)


def lost_rows(weights: Array, made: RoundedWeights, rows: Array) -> list[float]:
    """For each column what products of the rows lose, squared and summed, row by row."""
    scales, group = made.scales.astype(np.float64), made.group
    lost = [0.0] * len(weights)
    for column, own in enumerate(weights):
        errors = [
            float(own[at]) - int(made.integers[column, at]) * float(scales[column, at // group])
            for at in range(len(own))
        ]
        for row in rows.astype(np.float64):
            lost[column] += float(sum(x * error for x, error in zip(row, errors, strict=True))) ** 2
    return lost


@settings(max_examples=12, deadline=None)
@given(st.sampled_from([4, 8]), st.sampled_from([16, 32, 64]), st.integers(0, 99))
def test_no_column_loses_more_on_the_data_than_by_the_nearest_integers(
    bits: int, group: int, seed: int
) -> None:
    rows, weights = correlated_rows(24, seed), values((5, DEPTH), seed + 1, 0.1)
    made = round_weights(weights, rows.T @ rows, group, bits)
    assert made is not None
    assert -(1 << (bits - 1)) <= made.rounded.integers.min()
    assert made.rounded.integers.max() < 1 << (bits - 1)
    ours = lost_rows(weights, made.rounded, rows)
    plain = lost_rows(weights, round_to_nearest(weights, group, bits), rows)
    assert all(a <= b * (1 + 1e-6) for a, b in zip(ours, plain, strict=True))
    signal = float(np.square(rows.astype(np.float64) @ weights.T).sum())
    assert made.sqnr == pytest.approx(10 * np.log10(signal / sum(ours)), abs=0.05)


@pytest.mark.parametrize("bits", [4, 8])
def test_rows_that_were_not_seen_lose_less_too(bits: int) -> None:
    seen, unseen = correlated_rows(400, 2), correlated_rows(100, 3)
    weights = values((32, DEPTH), 4, 0.1)
    made = round_weights(weights, seen.T @ seen, 32, bits)
    assert made is not None
    ours = sum(lost_rows(weights, made.rounded, unseen))
    plain = sum(lost_rows(weights, round_to_nearest(weights, 32, bits), unseen))
    assert ours < 0.5 * plain


@pytest.mark.parametrize("moment", [0.0, np.nan, np.inf])
def test_moments_that_say_nothing_round_nothing(moment: float) -> None:
    moments = np.full((DEPTH, DEPTH), moment, np.float32)
    assert round_weights(values((5, DEPTH), 1), moments, 32, 4) is None


def test_a_plan_has_less_noise_with_data_and_is_sound() -> None:
    module = linear_model(40, DEPTH, 80, bias=False, relu=False)
    calibration = {"x": np.stack([correlated_rows(40, seed) for seed in range(8)])}
    feeds = {"x": correlated_rows(40, 20)}
    (expected,) = nacre.core.evaluate(module, feeds)
    ratios = {}
    for name, given_ in (
        ("plain", {}),
        ("with data", {"calibration": calibration}),
        ("without", {"calibration": calibration, "quantise_without": ["gptq"]}),
    ):
        bundle = nacre.compile(module, "npm4k", "w4f16", group_size=32, **given_)
        assert bundle.validate(feeds).first_difference is None
        noise = np.square(bundle.run(feeds)["output0"] - expected).sum()
        ratios[name] = 10 * np.log10(np.square(expected).sum() / noise)
        again = nacre.compile(module, "npm4k", "w4f16", group_size=32, **given_)
        assert again.weights == bundle.weights
    assert ratios["without"] == ratios["plain"]
    assert ratios["with data"] > ratios["plain"] + 3


@pytest.mark.parametrize(
    ("precision", "names", "message"),
    [
        ("w4f16", ["gptqq"], "no stage of quantisation is called `gptqq`"),
        ("w4f16", ["bias"], "the precision w4f16 has no stage `bias`"),
        ("w4f16", "gptq", "`quantise_without` is 'gptq', expected names"),
        ("f16", ["smooth"], "the precision f16 has no stage `smooth`"),
    ],
)
def test_stages_that_are_not_there_are_refused(precision: str, names: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        nacre.compile(linear_model(1, 64, 64), "npm4k", precision, quantise_without=names)  # type: ignore[arg-type]


def test_the_documentation_has_the_table_of_stages() -> None:
    text = (Path(__file__).parents[3] / "docs" / "compile.md").read_text()
    for stage in QUANTISE_STAGES:
        assert f"| `{stage.name}` | {', '.join(stage.precisions)} | {stage.effect} |" in text

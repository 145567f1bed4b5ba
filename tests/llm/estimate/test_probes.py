"""What plans are told to take from small ones, beside plans that were made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nacre.compile.api import compile as compile_module
from nacre.llm.checkpoint.configuration import read_config_json
from nacre.llm.estimate.probes import RandomWeights, plan_cycles
from nacre.llm.estimate.sizes import Precision
from nacre.llm.model.config import Config
from nacre.llm.model.layers import decoder_weights
from nacre.llm.model.runner import Decoder
from nacre.nem.model.target import builtin_device
from tests.cli.runner import invoke
from tests.llm.estimate.test_bounds import config

pytestmark = pytest.mark.sampled(2)  # together they take long

WITHIN = 0.03
PRECISION: Precision = "w4f16"


def written(folder: Path, said: dict[str, object]) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(said), encoding="utf-8")
    return path


def error_of(model: Config, device: str, tokens: int, rows: int) -> float:
    """How far the told cycles are from those of the whole plan."""
    told = plan_cycles(model, builtin_device(device), PRECISION, tokens, rows).at(rows)
    weights = decoder_weights(model, RandomWeights("m"))
    step = Decoder(model, weights, "m").step(rows, tokens)
    made = compile_module(step.module, device, PRECISION, ddr_bytes=1 << 32).time().cycles
    return told / made - 1


@pytest.mark.heavy("three plans are made")
def test_told_cycles_are_those_of_a_plan(tmp_path: Path) -> None:
    said = config(4, 64, 2, 1, 128, 500, True)
    model, _ = read_config_json(written(tmp_path, said))
    assert abs(error_of(model, "npm4k", 1, 16)) < WITHIN


@pytest.mark.full
@pytest.mark.parametrize("device", ["npm4k", "npm_pro"])
@pytest.mark.parametrize(
    ("said", "tokens", "rows"),
    [
        (config(6, 288, 6, 6, 768, 32_000, True), 1, 1024),
        (config(6, 288, 6, 6, 768, 32_000, True), 32, 512),
        (config(4, 1024, 16, 8, 4096, 16_384, True), 1, 512),  # parts of a layer are told, too
    ],
)
def test_told_cycles_are_those_of_large_plans(
    tmp_path: Path, said: dict[str, object], tokens: int, rows: int, device: str
) -> None:
    model, _ = read_config_json(written(tmp_path, said))
    assert abs(error_of(model, device, tokens, rows)) < WITHIN


def test_the_verb_says_plans_in_the_place_of_bounds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, config(1, 32, 2, 1, 64, 600, True))
    asked: list[str | Path] = [
        "llm",
        "estimate",
        path,
        "--device",
        "npm4k",
        "--context",
        "128",
        "--format",
        "json",
    ]
    bounds, plans = (
        json.loads(invoke(capsys, *asked, *more).out)["devices"][0] for more in ((), ("--plans",))
    )
    for part in ("prefill", "decode"):
        for bound, plan in zip(bounds[part], plans[part], strict=True):
            assert plan["bound_cycles"] == bound["cycles"] == bound["bound_cycles"]
            assert plan["cycles"] > bound["cycles"]
            assert plan["tokens_per_second"] < bound["tokens_per_second"]
    refused = invoke(capsys, *asked, "--plans", "--precision", "i8")
    assert refused.status == 2
    assert "calibration" in refused.err

"""How accurate an i8 plan is to be: a target, layers that are forced, and no fallback."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import nacre
from nacre.compile.bundle.bundle import Bundle
from nacre.core.builder import Builder
from nacre.core.module import Module
from tests.cli.runner import invoke

pytestmark = pytest.mark.sampled(2)  # together they take long

Capsys = pytest.CaptureFixture[str]
DATA = {"x": np.random.default_rng(1).standard_normal((6, 1, 48)).astype(np.float32)}


@cache
def model() -> Module:
    """Dense layers with norms between them, which integers have with some 30 dB."""
    random = np.random.default_rng(0)
    builder = Builder()
    x = builder.input("x", "f32", (1, 48))
    ones, zeros = (builder.constant(np.full(48, n, np.float32)) for n in (1, 0))
    for index in range(3):
        weights = random.standard_normal((48, 48)).astype(np.float32) / 7
        x = builder.add("Linear", x, builder.constant(weights))
        if index < 2:
            x = builder.add("LayerNorm", x, ones, zeros, axis=-1)
    return builder.module(x)


def plan(**given: object) -> Bundle:
    return nacre.compile(model(), "npm4k", "i8", calibration=DATA, **given)  # type: ignore[arg-type]


def test_a_target_keeps_layers_in_f16_and_validation_asks_for_it() -> None:
    usual, fine = plan(), plan(accuracy_db=55.0)
    assert usual.float_share == 0.0
    assert fine.float_share > 0.5
    assert "all in f16" in fine.precision_text
    found = fine.validate({"x": DATA["x"][0]})
    assert found.ok
    assert [output.bound for output in found.outputs] == [55.0]
    assert usual.validate({"x": DATA["x"][0]}).outputs[0].bound == 15.0


def test_without_the_fallback_all_stays_on_integers_and_the_plan_says_what_it_misses() -> None:
    bundle = plan(accuracy_db=55.0, fallback=False)
    assert bundle.float_share == 0.0
    assert "less than 55.0 dB" in bundle.manifest.notes[-1]
    assert bundle.validate({"x": DATA["x"][0]}).verdict == "not valid"


def test_layers_are_forced_in_both_directions_and_the_last_entry_counts() -> None:
    assert plan(precision_map={"*": "f16"}).float_share == 1.0
    linear = next(op.value_id for op in model().operations if op.opcode == "Linear")
    mixed = plan(precision_map={"*": "f16", linear: "i8"})
    assert mixed.float_share == pytest.approx(2 / 3)
    assert mixed.manifest.precision_map == {"*": "f16", f"%{linear}": "i8"}
    assert plan(precision_map={"*": "i8"}, accuracy_db=55.0).float_share == 0.0


def test_what_was_asked_for_is_in_the_manifest(tmp_path: Path) -> None:
    plan(accuracy_db=20.0, fallback=False).save(tmp_path / "plan")
    manifest = Bundle.load(tmp_path / "plan").manifest
    assert (manifest.accuracy_db, manifest.fallback) == (20.0, False)


def test_a_softmax_cannot_be_forced_onto_integers() -> None:
    builder = Builder()
    soft = builder.add("Softmax", builder.input("x", "f32", (1, 8)), axis=-1)
    data = {"x": np.ones((2, 1, 8), np.float32)}
    with pytest.raises(nacre.InputError, match="no form on integers"):
        nacre.compile(builder.module(soft), "npm4k", "i8", calibration=data,
                      precision_map={f"%{soft}": "i8"})  # fmt: skip


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"precision": "f16", "accuracy_db": 30.0}, "`accuracy_db` is for integers"),
        ({"precision": "f16", "fallback": False}, "`fallback` is for i8"),
        ({"accuracy_db": -1.0}, "above 0"),
        ({"accuracy_db": float("nan")}, "above 0"),
        ({"accuracy_db": "30dB"}, "above 0"),
        ({"fallback": "no"}, "expected True or False"),
        ({"precision_map": {"*": "f32"}}, "expected `f16` or `i8`"),
    ],
)
def test_what_cannot_be_meant_is_refused(given: dict[str, object], words: str) -> None:
    asked: dict[str, object] = {"precision": "i8", "calibration": DATA, **given}
    if asked["precision"] == "f16":
        del asked["calibration"]
    with pytest.raises(nacre.InputError, match=words):
        nacre.compile(model(), "npm4k", **asked)  # type: ignore[arg-type]


@pytest.mark.heavy("compiles networks")
def test_an_estimate_without_data_is_a_range_that_holds_what_compile_makes() -> None:
    found = nacre.estimate(model(), "npm4k", "i8")
    assert found.cycles is not None
    assert found.most_cycles is not None
    for bundle in (plan(), plan(accuracy_db=55.0)):
        assert found.cycles <= bundle.time().cycles <= found.most_cycles
    exact = nacre.estimate(model(), "npm4k", "i8", calibration=DATA, accuracy_db=55.0)
    assert exact.most_cycles is None
    assert exact.cycles == plan(accuracy_db=55.0).time().cycles


def test_first_lines_say_how_much_of_an_i8_plan_is_f16(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    nacre.core.save(model(), "m.core")
    np.savez("data.npz", **DATA)  # type: ignore[arg-type]
    how = ("m.core", "--device", "npm4k", "--precision", "i8")
    fine = (*how, "--calibrate", "data.npz", "--accuracy", "55dB")

    def first(*arguments: str) -> str:
        return invoke(capsys, *arguments).out.splitlines()[0]

    assert "in i8, all in f16" in first("compile", *fine, "-o", "plan")
    assert "all in f16" in first("validate", "plan")
    assert "all in f16" in first("estimate", *fine)
    line = first("estimate", *how)
    assert " to " in line
    assert "without calibration data" in line
    kept = first("compile", *fine, "--no-fallback", "-o", "other")
    assert "compiled for npm4k in i8:" in kept


def test_a_bound_that_integers_take_away_before_a_logarithm_stays_floats() -> None:
    """At 256 steps the least power is 0, its logarithm no number: nothing is worse to lose."""
    random, builder = np.random.default_rng(0), Builder()
    x = builder.input("x", "f32", (8, 64))
    weights = builder.constant(random.standard_normal((40, 64)).astype(np.float32) / 16)
    made = builder.add("Linear", x, weights)
    for op, number in (("Pow", 2), ("Mul", 1e-4)):
        made = builder.add("BinOp", made, builder.constant(np.float32(number)), op=op)
    module = builder.module(builder.add("Log", builder.add("Clip", made, min=1e-10, max=1e9)))
    data = [{"x": random.standard_normal((8, 64)).astype(np.float32)} for _ in range(4)]
    plan = nacre.compile(module, "npm4k", "i8", calibration=data)
    (found,) = plan.run(data[0]).values()
    assert np.isfinite(found).all()
    assert plan.validate(data[0]).ok

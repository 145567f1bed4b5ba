"""`nacre validate`, and other verbs that take a bundle."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nacre
from nacre.cli.exit_status import ERRORS_FOUND, INCONCLUSIVE, OK, WRONG_USAGE
from nacre.cli.main import _exit_status
from nacre.compile.bundle.bundle import Bundle
from nacre.core.builder import Builder
from tests.compile.models import values

pytestmark = pytest.mark.sampled(2)  # together they take long

Make = Callable[[str], Path]


@pytest.fixture
def made(tmp_path: Path) -> Make:
    """The folder of a bundle in some precision, with its input beside it."""

    def make(precision: Any) -> Path:  # noqa: ANN401 - a word of the options
        builder = Builder()
        x = builder.input("x:0", "f32", (4, 16))
        kept = builder.input("kept", "f32", (4, 8))
        y = builder.add("Linear", x, builder.constant(values((8, 16), 1)))
        y = builder.add("BinOp", y, kept, op="Add")
        builder.state("kept", y, builder.constant(np.zeros((4, 8), np.float32)))
        module = builder.module(y)
        given = 5 + values((4, 16), 2)  # far from 0
        data = [{"x:0": given}] if precision == "i8" else None
        nacre.compile(module, "npm4k", precision, calibration=data).save(tmp_path / "b")
        np.save(tmp_path / "x.npy", given)
        return tmp_path / "b"

    return make


def run(*arguments: object) -> int:
    return _exit_status([*map(str, arguments)])


def test_two_plans_where_the_model_makes_no_numbers(
    made: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = made("f16")
    np.save(folder.parent / "x.npy", np.full((4, 16), np.nan, np.float32))
    given = ["compare", folder, folder, "--input", f"x:0={folder.parent / 'x.npy'}"]
    assert run(*given) == INCONCLUSIVE
    assert "proves nothing: 32 of 32 elements of the reference are NaN" in capsys.readouterr().out
    assert run(*given, "--format", "json") == INCONCLUSIVE
    (output,) = json.loads(capsys.readouterr().out)["plans"][0]["outputs"]
    assert output["ok"] is False
    assert "NaN" in output["problem"]
    assert run("compare", folder, folder) == OK


def test_stages_of_quantisation_that_are_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for names, words in (("smoth", "did you mean `smooth`"), ("gptq", "it has none")):
        arguments = ["compile", "m.core", "--device", "npm4k", "--quantise-without", names]
        assert run(*arguments, "-o", tmp_path / "b") == WRONG_USAGE
        assert words in capsys.readouterr().err


@pytest.mark.parametrize("precision", ["f16", "i8"])
def test_a_plan_is_held_to_its_model(
    made: Make, precision: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = made(precision)
    assert run("validate", folder, "--input", f"x:0={folder.parent / 'x.npy'}") == OK
    told = capsys.readouterr().out
    assert f"npm4k, {precision}, " in told
    assert "against the legalised module: the same bits\n" in told
    assert told.endswith("valid\n")
    # Random inputs of integers lie where the calibration data lay.
    assert run("validate", folder, "--seed", 3) == OK
    assert "random inputs, seed 3" in capsys.readouterr().out


def test_numbers_of_others(made: Make, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made("f16")
    given = ["--input", f"x:0={folder.parent / 'x.npy'}", "--format", "json"]
    np.save(folder.parent / "y.npy", np.zeros((4, 8), np.float32))
    status = run("validate", folder, *given, "--expect", f"output0={folder.parent / 'y.npy'}")
    found = json.loads(capsys.readouterr().out)
    assert status == ERRORS_FOUND
    assert (found["ok"], found["outputs"][0]["ok"], found["first_difference"]) == (False,) * 2 + (
        None,
    )
    assert found["compared_with"] == "the outputs that were given"


def test_a_layer_that_differs_is_named(made: Make, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made("f16")
    bundle = Bundle.load(folder)
    weights = bytearray(bundle.weights)
    weights[1] ^= 0x40
    replace(bundle, weights=bytes(weights)).save(folder)
    assert run("validate", folder) == ERRORS_FOUND
    told = capsys.readouterr().out
    assert "linear_0" in told
    assert "NOT VALID" in told


def test_wrong_usage(made: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made("f16")
    x = f"x:0={tmp_path / 'x.npy'}"
    for wanted, arguments in {
        "is no bundle, which is a folder": (tmp_path / "none",),
        "give them with --input": (folder, "--expect", x),
        "`x:0` is given twice": (folder, "--input", x, "--input", x),
    }.items():
        assert run("validate", *arguments) == WRONG_USAGE
        assert wanted in capsys.readouterr().err
    assert run("validate", folder, "--input", f"y={tmp_path / 'x.npy'}") == ERRORS_FOUND
    assert "x:0" in capsys.readouterr().err
    (folder / "model.nem").write_text("")
    assert run("validate", folder, "--format", "json") == ERRORS_FOUND
    assert json.loads(capsys.readouterr().out)["diagnostics"][0]["code"] == "CMP07"


def test_other_verbs_take_a_bundle(made: Make, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made("f16")
    x, y = (folder.parent / name for name in ("x.npy", "y.npy"))
    assert run("check", "--strict", folder) == OK
    assert "no problems" in capsys.readouterr().out
    assert run("run", folder, "--input", f"x:0={x}", "--output", f"output0={y}") == OK
    assert "completed\n" in capsys.readouterr().out
    arguments = ("--input", f"x:0={x}", "--batch", "--command", "continue")
    assert run("debug", folder, *arguments) == OK
    assert "finished after 6 of 6 steps" in capsys.readouterr().out
    for wanted, name in {"has no output `y:0`": "y:0", "own types": "output0:f32"}.items():
        assert run("run", folder, "--input", f"x:0={x}", "--output", f"{name}={y}") == WRONG_USAGE
        assert wanted in capsys.readouterr().err


def masked(tmp_path: Path, *, is_dead: bool) -> Path:
    """A network that shows what lies before a length; a dead one shows nothing at all."""
    builder = Builder()
    x, length = builder.input("x", "f32", (2, 16)), builder.input("length", "i64", (2,))
    positions = builder.constant(np.arange(16)[None])
    inside = builder.add(
        "Compare", positions, builder.add("ExpandDims", length, axes=(1,)), op="Lt"
    )
    zero = builder.constant(np.float32(0))
    y = builder.add("Where", inside, builder.add("Neg", x), zero)
    if is_dead:
        y = builder.add("BinOp", y, zero, op="Mul")
    nacre.compile(builder.module(y), "npm4k").save(tmp_path / "masked")
    np.save(tmp_path / "x.npy", values((2, 16), 1))
    np.save(tmp_path / "length.npy", np.zeros(2, np.int64))
    return tmp_path / "masked"


def test_random_lengths_reach_the_network(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = masked(tmp_path, is_dead=False)
    for seed in range(3):
        assert run("validate", folder, "--seed", seed) == OK
        assert capsys.readouterr().out.endswith("valid\n")


def test_what_proves_nothing_has_a_status_of_its_own_and_asks_for_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = masked(tmp_path, is_dead=False)
    given = [f"--input={name}={tmp_path / name}.npy" for name in ("x", "length")]
    assert run("validate", folder, *given) == INCONCLUSIVE
    told = capsys.readouterr().out
    assert "  output0 proves nothing: the reference is 0 everywhere\nINCONCLUSIVE\n" in told
    assert "--input x=FILE.npy --input length=FILE.npy" in told
    assert run("validate", folder, *given, "--format", "json") == INCONCLUSIVE
    assert json.loads(capsys.readouterr().out)["verdict"] == "inconclusive"


@pytest.mark.parametrize("seed", [0, 3])
def test_an_output_that_proves_nothing_leaves_the_others_as_they_were_judged(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Further draws are for it alone, and stay where a plan on integers was calibrated."""
    builder = Builder()
    x = builder.input("x", "f32", (8, 32))
    h = builder.add("Linear", x, builder.constant(values((16, 32), 99)))
    below = builder.add("BinOp", h, builder.constant(np.float32(-100)), op="Add")
    module = builder.module(builder.add("Relu", h), builder.add("Relu", below))
    data = [{"x": values((8, 32), 100 + at)} for at in range(16)]
    nacre.compile(module, "npm4k", "i8", calibration=data).save(tmp_path / "b")
    given = ["validate", tmp_path / "b", "--seed", seed, "--format", "json"]
    assert run(*given) == INCONCLUSIVE
    alive, dead = json.loads(capsys.readouterr().out)["outputs"]
    assert alive["ok"]
    assert alive["value"] > 30
    assert "is 0 everywhere" in dead["problem"]


def test_a_draw_that_is_too_large_for_one_output_is_not_held_against_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    builder = Builder()
    x = builder.input("x", "f32", (4, 8))
    grown = builder.add("Unary", builder.add("BinOp", x, x, op="Add"), op="Exp2")
    below = builder.add("BinOp", x, builder.constant(np.float32(-1e4)), op="Add")
    module = builder.module(grown, builder.add("Relu", below))  # f16 has no 2 to the power 20
    nacre.compile(module, "npm4k", "f16").save(tmp_path / "b")
    assert run("validate", tmp_path / "b", "--format", "json") == INCONCLUSIVE
    alive, dead = json.loads(capsys.readouterr().out)["outputs"]
    assert alive["ok"]
    assert not dead["ok"]


def test_a_network_that_no_input_moves_is_not_valid_on_random_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("validate", masked(tmp_path, is_dead=True)) == INCONCLUSIVE
    assert "INCONCLUSIVE" in capsys.readouterr().out
    builder = Builder()
    x = builder.input("x", "f32", (2, 16))
    none = builder.add("BinOp", x, builder.constant(np.float32(0)), op="Mul")
    y = builder.add("BinOp", none, builder.constant(values((2, 16), 1)), op="Add")
    nacre.compile(builder.module(y), "npm4k").save(tmp_path / "unmoved")
    assert run("validate", tmp_path / "unmoved") == INCONCLUSIVE
    assert "the reference is the same for other inputs" in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["validate", "run"])
def test_a_folder_that_is_no_bundle(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _exit_status([verb, str(tmp_path)]) == ERRORS_FOUND
    captured = capsys.readouterr()
    assert "is no bundle: it has no manifest.json" in captured.out + captured.err


def test_blame_as_text_as_json_and_as_a_page(
    made: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = made("i8")
    given = ["--input", f"x:0={folder.parent / 'x.npy'}", "--blame"]
    page = folder.parent / "page.html"
    assert run("validate", folder, *given, "--report", page) == OK
    told = capsys.readouterr().out
    assert "noise in dB of signal over it (all; `-` is exact):" in told
    assert "QLinear" in told
    assert f"wrote {page}" in told
    assert '"first_divergence"' in page.read_text(encoding="utf-8")
    assert run("validate", folder, *given, "--remedies", 1, "--format", "json") == OK
    found = json.loads(capsys.readouterr().out)["blame"]
    assert found["ranges"] == "the inputs of this run"
    assert {one["node"] for one in found["tensors"]} >= {"x:0", "kept"}
    assert len(found["remedies"]) == 1
    assert all(sum(one["histogram"]["counts"]) == np.prod(one["shape"]) for one in found["tensors"])
    # Without inputs those that validate draws are taken.
    assert run("validate", folder, "--blame", "--format", "json") == OK
    assert json.loads(capsys.readouterr().out)["blame"]["tensors"]


@pytest.mark.parametrize(
    "options",
    [
        ["--remedies", 1],
        ["--report", "p.html"],
        ["--blame", "--calibrate", "x.npz"],
        ["--blame", "--report", "p.onnx"],
    ],
)
def test_options_of_blame_that_mean_nothing(made: Make, options: list[object]) -> None:
    assert run("validate", made("f16"), *options) == WRONG_USAGE


def test_remedies_are_for_integers(made: Make, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("validate", made("f16"), "--blame", "--remedies", 1) == ERRORS_FOUND
    assert "CMP04" in capsys.readouterr().err


def test_two_plans_are_compared(made: Make, capsys: pytest.CaptureFixture[str]) -> None:
    first = made("f16").rename(made("f16").parent / "first")
    second = made("i8")
    assert run("compare", first, second, "--seed", 2) == OK
    told = capsys.readouterr().out
    assert told.startswith(f"A: {first}, npm4k, f16: ")
    assert f"B: {second}, npm4k, i8: " in told
    assert "B - A" in told
    assert run("compare", first, second, "--format", "json") == OK
    found = json.loads(capsys.readouterr().out)
    assert [plan["precision"] for plan in found["plans"]] == ["f16", "i8"]
    assert run("compare", first, first.parent / "nothing") == WRONG_USAGE

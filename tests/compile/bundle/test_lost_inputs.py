"""NaN and infinities: those that a plan on integers of 8 bits is given, those that one makes."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import nacre
from nacre.base.diagnostics import InputError
from nacre.compile.bundle.bundle import Bundle
from nacre.core.builder import Builder
from nacre.core.values import Array
from tests.cli.runner import invoke


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    builder, random = Builder(), np.random.default_rng(2)
    x, y = (builder.input(name, "f32", (4, 8)) for name in "xy")
    weight = builder.constant(random.standard_normal((3, 8)).astype(np.float32))
    module = builder.module(builder.add("Linear", builder.add("BinOp", x, y, op="Add"), weight))
    samples = {name: random.standard_normal((3, 4, 8)).astype(np.float32) for name in "xy"}
    return nacre.compile(module, "npm4k", precision="i8", calibration=samples)


def inputs() -> dict[str, Array]:
    given = {name: np.ones((4, 8), np.float32) for name in "xy"}
    given["y"][0, :3] = np.nan
    given["y"][1, 1:3] = np.inf, -np.inf
    return given


TOLD = "input `y` has 3 NaN and 2 infinities among 32 elements"


def test_runs_and_sessions_warn_of_what_integers_do_not_hold(bundle: Bundle) -> None:
    for run in (bundle.run, bundle.session().run):
        with pytest.warns(UserWarning, match="CMP12: " + TOLD) as found:
            run(inputs())
        assert len(found) == 1
    with warnings.catch_warnings(action="error"):
        bundle.run({name: np.ones((4, 8), np.float32) for name in "xy"})


def test_the_command_warns_and_runs(
    bundle: Bundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle.save(tmp_path / "bundle")
    options: list[str] = []
    for name, array in inputs().items():
        np.save(tmp_path / f"{name}.npy", array)
        options += ["--input", f"{name}={tmp_path / name}.npy"]
    done = invoke(capsys, "run", tmp_path / "bundle", *options)
    assert done.status == 0
    assert "warning[CMP12]" in done.text
    assert TOLD in done.text


@pytest.mark.filterwarnings("always")
def test_every_verb_shows_the_warning_by_its_code_and_no_line_of_our_source(
    bundle: Bundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle.save(tmp_path / "bundle")
    options: list[str] = []
    for name, array in inputs().items():
        np.save(tmp_path / f"{name}.npy", array)
        options += ["--input", f"{name}={tmp_path / name}.npy"]
    folder = str(tmp_path / "bundle")
    for verb in (
        ("validate", folder),
        ("validate", folder, "--blame"),
        ("compare", folder, folder),
    ):
        done = invoke(capsys, *verb, *options)
        assert done.text.count(f"warning[CMP12]: {TOLD}") == 1
        assert "UserWarning" not in done.text
        assert ".py:" not in done.text


def test_calibration_data_that_is_not_finite_is_refused() -> None:
    builder = Builder()
    x = builder.input("x", "f32", (4, 8))
    module = builder.module(builder.add("Softmax", x, axis=1))
    with pytest.raises(InputError) as caught:
        nacre.compile(module, "npm4k", precision="i8", calibration={"x": inputs()["y"][None]})
    assert caught.value.diagnostics[0].code == "CMP09"


@pytest.fixture(scope="module")
def squares() -> Bundle:
    builder = Builder()
    x = builder.input("x", "f32", (4, 8))
    y = builder.add("BinOp", x, x, op="Mul")
    return nacre.compile(builder.module(y, builder.add("BinOp", y, y, op="Sub")), "npm4k")


def test_runs_warn_of_outputs_that_are_not_finite_though_inputs_are(squares: Bundle) -> None:
    given = {"x": np.ones((4, 8), np.float32)}
    with warnings.catch_warnings(action="error"):
        squares.run(given)
        squares.run({"x": np.full((4, 8), np.inf, np.float32)})  # is no wonder then
    given["x"][0, :3] = 300
    names = squares.source.output_names
    for run in (squares.run, squares.session().run):
        with pytest.warns(UserWarning, match="CMP13") as found:
            run(given)
        told = [str(warning.message) for warning in found]
        assert told == [
            f"CMP13: output `{name}` has {what} among 32 elements, of inputs that are all finite"
            for name, what in zip(names, (INFINITE, NANS), strict=True)
        ]


INFINITE, NANS = "0 NaN and 3 infinities", "3 NaN and 0 infinities"


def test_the_command_warns_of_outputs_too(
    squares: Bundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    squares.save(tmp_path / "bundle")
    np.save(tmp_path / "x.npy", np.full((4, 8), 300, np.float32))
    options = (tmp_path / "bundle", "--input", f"x={tmp_path / 'x.npy'}")
    done = invoke(capsys, "run", *options)
    assert done.status == 0
    assert done.text.count("warning[CMP13]") == 2
    assert "has 0 NaN and 32 infinities among 32 elements" in done.text
    assert "CMP13" not in invoke(capsys, "run", *options, "--allow", "CMP13").text
    assert invoke(capsys, "run", *options, "--strict").status == 1

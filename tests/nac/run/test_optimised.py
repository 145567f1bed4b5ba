"""Programs run rewritten for inference, unless they are run as they are written."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nacre import core, nac
from nacre.base.diagnostics import InputError
from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.nac.format.file import to_bytes
from nacre.nac.program.assembly import Assembler
from nacre.nac.run import optimised as programs
from nacre.nac.run.model import NacModel, load
from tests.cli.runner import invoke
from tests.nac.tolerance import assert_close

F32 = np.float32


def network(channels: int = 4) -> Module:
    """Convolutions with norms, as exporters leave them."""
    random = np.random.default_rng(1)
    build = Builder()
    x = build.input("x", "f32", (1, 3, 8, 8))
    for inputs in (3, channels, channels):
        weights = random.standard_normal((channels, inputs, 3, 3)).astype(F32) / 3
        numbers = random.uniform(0.5, 1.5, (4, channels)).astype(F32)
        x = build.add("Conv", x, build.constant(weights), pads=(1, 1, 1, 1))
        x = build.add("BatchNorm", x, *map(build.constant, numbers), epsilon=1e-5)
        x = build.add("Relu", x)
    return build.module(build.add("Mean", x, axes=(2, 3), keepdims=False))


X = np.random.default_rng(2).standard_normal((1, 3, 8, 8)).astype(F32)
Kept = dict[object, Any]


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was prepared, in its order."""
    found: list[Any] = []
    real: Callable[..., Any] = programs.optimise_program

    def counting(model: NacModel, given: Kept) -> Any:  # noqa: ANN401
        made = real(model, given)
        found.append(made)
        return made

    monkeypatch.setattr(programs, "optimise_program", counting)
    return found


def reference(model: NacModel) -> np.ndarray[Any, Any]:
    return core.evaluate(nac.lift(model), {"x": X})[0]


def test_a_program_takes_the_steps_of_the_optimised_module(prepared: list[Any]) -> None:
    module = network()
    model = nac.build(module)
    found = model.run({"x": X})[0]
    steps = len(prepared[0].session._plan.steps)
    assert steps == len(core.CoreSession(core.optimise(module))._plan.steps)
    assert steps < len(core.CoreSession(module)._plan.steps)
    wanted = reference(model)
    assert_close(found, wanted)


def test_it_is_prepared_once_for_all_sessions_and_threads(prepared: list[Any]) -> None:
    model = nac.build(network())
    with ThreadPoolExecutor(4) as pool:
        every = list(pool.map(lambda _: model.run({"x": X})[0], range(12)))
    every += [model.session().run({"x": X})[0] for _ in range(2)]
    assert len(prepared) == 1
    assert model.weights.kept_bytes == prepared[0].kept_bytes
    for one in every:
        np.testing.assert_array_equal(one, every[0])


@pytest.mark.parametrize("options", [{"optimise": False}, {"timed": True}])
def test_as_written_it_has_the_bits_of_the_lifted_module(
    prepared: list[Any], options: dict[str, bool]
) -> None:
    model = nac.build(network())
    model.run({"x": X})
    session = model.session(**options)
    for _ in range(3):
        np.testing.assert_array_equal(session.run({"x": X})[0], reference(model))
    assert len(prepared) == 1
    assert bool(session.timings) == options.get("timed", False)


def test_what_may_not_be_kept_is_run_as_written(tmp_path: Path, prepared: list[Any]) -> None:
    nac.save(nac.build(network()), tmp_path / "m.nac")
    model = nac.load(tmp_path / "m.nac", keep_bytes=0)
    session = model.session()
    for _ in range(2):
        np.testing.assert_allclose(session.run({"x": X})[0], reference(model), rtol=1e-6)
    assert prepared == [None]
    assert session.kept_bytes == 0


def test_longer_and_longer_inputs_are_not_prepared_for_each(prepared: list[Any]) -> None:
    made = Assembler()
    x = made.input("x")
    made.output(made.call("aten.relu.default", made.call("nac.neg", x)))
    model = load(to_bytes(made.file()))
    session = model.session()
    for length in (*range(1, 12), 2, 9):
        values = np.linspace(-1, 1, length, dtype=F32)
        np.testing.assert_array_equal(session.run({"x": values})[0], np.maximum(-values, 0))
    assert len(prepared) == 4


def test_a_rewrite_that_fails_leaves_the_program_as_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> Module:
        raise ValueError("nothing that a rewrite was made for")

    monkeypatch.setattr(programs, "run_passes", refuse)
    model = nac.build(network())
    np.testing.assert_array_equal(model.run({"x": X})[0], reference(model))


def test_the_command_runs_as_written_on_demand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], prepared: list[Any]
) -> None:
    file, given, out = (tmp_path / name for name in ("m.nac", "x.npy", "y.npy"))
    nac.save(nac.build(network()), file)
    np.save(given, X)
    run = ("nac", "run", file, "--input", f"x={given}", "--output", f"0={out}")
    wanted = reference(nac.load(file))
    for option in (("--as-written",), ("--times",)):
        assert invoke(capsys, *run, *option).status == 0
        np.testing.assert_array_equal(np.load(out), wanted)
    assert prepared == []
    assert invoke(capsys, *run).status == 0
    assert len(prepared) == 1
    assert_close(np.load(out), wanted)


def test_runs_that_are_like_the_last_one_give_new_arrays_of_the_same_values() -> None:
    session = nac.build(network()).session()
    first, second, third = (session.run({"x": X})[0] for _ in range(3))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, third)
    assert not np.shares_memory(second, third)
    second.fill(np.nan)
    np.testing.assert_array_equal(session.run({"x": X})[0], third)


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ({"x": X.astype(np.float64)}, "float64"),
        ({"x": X[:, :2]}, "[1, 2, 8, 8]"),
        ({"x": np.ma.masked_array(X)}, "masked"),
        ({"y": X}, "`x` is missing"),
        ({"x": X, "y": X}, "no input `y`"),
        ({}, "`x` is missing"),
        ([X], "list"),
    ],
)
def test_inputs_are_refused_after_runs_with_others_that_were_right(
    inputs: Any,  # noqa: ANN401
    reason: str,
) -> None:
    session = nac.build(network()).session()
    wanted = [session.run({"x": X})[0] for _ in range(2)][-1]
    with pytest.raises(InputError) as caught:
        session.run(inputs)
    assert reason in str(caught.value)
    np.testing.assert_array_equal(session.run({"x": X})[0], wanted)


def test_arrays_that_are_not_dense_follow_such_that_are() -> None:
    session = nac.build(network()).session()
    wanted = [session.run({"x": X})[0] for _ in range(2)][-1]
    turned = np.asfortranarray(X)
    assert not turned.flags.c_contiguous
    np.testing.assert_array_equal(session.run({"x": turned})[0], wanted)

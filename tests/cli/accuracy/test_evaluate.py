"""`nacre evaluate`: a plan beside its model on labelled data."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import nacre
from nacre.cli.exit_status import ERRORS_FOUND, OK, WRONG_USAGE
from nacre.cli.main import _exit_status
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import Module
from nacre.core.storage import save
from tests.compile.models import values


def run(*arguments: object) -> int:
    return _exit_status([*map(str, arguments)])


def classifier() -> Module:
    builder = Builder()
    x = builder.input("x", "f32", (1, 16))
    return builder.module(builder.add("Linear", x, builder.constant(values((5, 16), 1))))


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """A plan, its model, and forty samples of which the model has ten wrong."""
    module, x = classifier(), values((40, 1, 16), 2)
    labels = np.array([int(evaluate(module, {"x": one})[0].argmax()) for one in x])
    labels[:10] = (labels[:10] + 1) % 5
    np.savez(tmp_path / "data.npz", x=x, label=labels)
    nacre.compile(module, "npm4k", "i8", calibration={"x": x}).save(tmp_path / "plan")
    save(module, tmp_path / "model.core")
    return tmp_path


def test_a_plan_and_its_model(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("evaluate", room / "plan", "--data", room / "data.npz", "--format", "json") == OK
    found = json.loads(capsys.readouterr().out)
    bundle, data = nacre.Bundle.load(room / "plan"), np.load(room / "data.npz")
    right = [
        int(next(iter(bundle.run({"x": x}).values())).argmax()) == label
        for x, label in zip(data["x"], data["label"], strict=True)
    ]
    assert (found["samples"], found["model"]) == (40, 0.75)
    assert found["plan"] == sum(right) / 40
    assert found["lost"] == found["model"] - found["plan"]
    assert bundle.evaluate(dict(data)).as_json() == found
    assert run("evaluate", room / "model.core", "--data", room / "data.npz", "--metric", "f1") == OK
    told = capsys.readouterr().out
    assert told.startswith("f1 over 40 samples: the model ")
    (room / "own.py").write_text("def metric(outputs, labels):\n    return len(outputs) / 8\n")
    own = ["--metric", room / "own.py"]
    assert run("evaluate", room / "model.core", "--data", room / "data.npz", *own) == OK
    assert "the model 5" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (["--metric", "top"], ERRORS_FOUND),
        (["--label", "labels"], ERRORS_FOUND),
        (["--output", "y"], ERRORS_FOUND),
        (["--preprocess", "how.toml"], WRONG_USAGE),
        (["--metric", "nothing.py"], WRONG_USAGE),
        (["--blank", "-1"], WRONG_USAGE),
    ],
)
def test_what_does_not_fit(room: Path, options: list[str], status: int) -> None:
    assert run("evaluate", room / "model.core", "--data", room / "data.npz", *options) == status


def test_files_of_data_that_do_not_fit(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = {
        "less": {"x": values((4, 1, 16), 2), "label": np.arange(3)},
        "none": {"x": values((4, 1, 16), 2)},
        "shape": {"x": values((4, 1, 15), 2), "label": np.arange(4)},
        "scalar": {"x": values((4, 1, 16), 2), "label": np.array(3)},
        "nan": {"x": values((4, 1, 16), 2) * np.nan, "label": np.arange(4)},
    }
    for name, arrays in wrong.items():
        np.savez(room / f"{name}.npz", **arrays)  # type: ignore[arg-type]
        given = ["--data", room / f"{name}.npz"]
        assert run("evaluate", room / "model.core", *given) == ERRORS_FOUND
        told = capsys.readouterr().err
        assert "error[CMP" in told
        message = f"--> {room / name}.npz\n"
        assert message in told
        assert "--calibrate" not in told
    (room / "bad.py").write_text("1 / 0")
    given = ["--data", room / "data.npz", "--metric", room / "bad.py"]
    assert run("evaluate", room / "model.core", *given) == ERRORS_FOUND


def test_a_folder_of_pictures(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = pytest.importorskip("PIL.Image")
    random = np.random.default_rng(0)
    for name in "abcde":
        (room / "pictures" / name).mkdir(parents=True)
        pixels = random.integers(0, 256, (4, 4)).astype(np.uint8)
        image.fromarray(pixels).save(room / "pictures" / name / "one.png")
    how = room / "how.toml"
    how.write_text('input = "x"\nsize = [4, 4]\nchannels = "gray"\nlayout = "nhwc"\n')
    builder = Builder()
    x = builder.input("x", "f32", (1, 4, 4, 1))
    rows = builder.add("Reshape", x, new_shape=(1, 16))
    module = builder.module(builder.add("Linear", rows, builder.constant(values((5, 16), 1))))
    save(module, room / "pictures.core")
    given = ["evaluate", room / "pictures.core", "--data", room / "pictures"]
    assert run(*given) == WRONG_USAGE
    capsys.readouterr()
    assert run(*given, "--preprocess", how) == OK
    assert "top1 over 5 samples" in capsys.readouterr().out
    assert run(*given, "--preprocess", how, "--label", "class") == OK

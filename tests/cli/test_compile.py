"""`nacre compile`: a bundle on disk, and what is said about models that cannot be compiled."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import nacre
from nacre import core
from nacre.cli.exit_status import ERRORS_FOUND, OK, WRONG_USAGE
from nacre.cli.main import _exit_status
from tests.compile.models import inputs_of, linear_model


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.core"
    core.save(linear_model(64, 32, 48), path)
    return path


def run(*arguments: object) -> int:
    return _exit_status(["compile", *map(str, arguments)])


def test_a_bundle_is_written(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "bundle"
    assert run(model, "--device", "npm4k", "-o", folder) == OK
    out = capsys.readouterr().out
    assert "compiled for npm4k in f16: 1 layer, 98,304 MACs, " in out
    bundle = nacre.Bundle.load(folder)
    assert bundle.validate(inputs_of(bundle.source)).ok
    assert json.loads((folder / "manifest.json").read_text())["precision"] == "f16"


def test_weights_are_compressed_where_the_device_can(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "bundle"
    asked = (model, "--device", "npm_pro", "-o", folder)
    assert run(*asked, "--compress") == OK
    assert "compressed 0 of 1 blocks of weights\n" in capsys.readouterr().out
    assert run(*asked, "--compress=cluster") == OK
    out = capsys.readouterr().out
    assert "compressed 1 of 1 blocks of weights, " in out
    assert "note: 1 of 1 weights have 16 values at most: output `output0` has SQNR " in out
    found = json.loads((folder / "manifest.json").read_text())["compression"]
    assert (found["form"], found["blocks"], found["clustered"]) == ("cluster", 1, 1)
    assert run(*asked, "--compress=cluster", "--accuracy", "80dB") == OK
    assert "no weights are clustered: output `output0` has SQNR " in capsys.readouterr().out
    assert run(*asked, "--compress=exact", "--accuracy", "80dB") == WRONG_USAGE
    assert "--accuracy is for integers, and --precision is f16" in capsys.readouterr().err
    assert run(model, "--device", "npm4k", "--compress", "-o", tmp_path / "other") == ERRORS_FOUND
    assert "CMP14" in capsys.readouterr().err


def test_a_stage_is_shown(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--print-after", "legalise", "--print-after", "partition")
    assert run(model, "--device", "npm4k", *asked, "-o", tmp_path / "b") == OK
    err = capsys.readouterr().err
    assert "# after legalise" in err
    assert "linear_0: Linear" in err
    assert "# after tile" not in err


def test_what_cannot_be_compiled_is_said_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wide.core"
    path.write_text(
        '%0 = Input () {name="x"} : tensor<f32[1, 2000000]>\n'
        "%1 = Softmax (%0) {axis=1} : tensor<f32[1, 2000000]>\noutputs: %1\n"
    )
    assert run(path, "--device", "npm4k", "-o", tmp_path / "b") == ERRORS_FOUND
    err = capsys.readouterr().err
    assert "CMP02" in err
    assert "no tile of `softmax_0` fits" in err
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("missing.core", "--device", "npm4k"), WRONG_USAGE),
        (("{model}", "--device", "npm4q"), ERRORS_FOUND),
        (("{model}", "--device", "npm4k", "--precision", "f8"), WRONG_USAGE),
        (("{model}", "--device", "npm4k", "--ddr-size", "many"), WRONG_USAGE),
        (("{model}", "--device", "npm4k", "--print-after", "quantise"), WRONG_USAGE),
        (("{model}",), WRONG_USAGE),
    ],
)
def test_wrong_requests(
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    status: int,
) -> None:
    given = [a.format(model=model) for a in arguments]
    assert run(*given, "-o", tmp_path / "b") == status
    assert "Traceback" not in capsys.readouterr().err


def test_a_folder_that_cannot_be_written(model: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert run(model, "--device", "npm4k", "-o", tmp_path / "file" / "b") == WRONG_USAGE


@pytest.mark.parametrize(
    ("option", "told"),
    [
        (("--device", "npm4k"), "a bundle is for one device"),
        (("--ddr-size", "1K"), "a bundle brings the size of its DDR"),
    ],
)
def test_options_that_a_bundle_answers_itself(
    option: tuple[str, str],
    told: str,
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(model, "--device", "npm4k", "-o", tmp_path / "b") == OK
    assert _exit_status(["run", str(tmp_path / "b"), *option]) == WRONG_USAGE
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (("--device", "npm64k"), "a plan is for one device; `nacre estimate` compares several"),
        (("--observer", "mse"), "--observer is for integers, and --precision is f16"),
    ],
)
def test_options_that_contradict_each_other(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...], wanted: str,
) -> None:  # fmt: skip
    assert run(model, "--device", "npm4k", *arguments, "-o", tmp_path / "b") == WRONG_USAGE
    assert wanted in capsys.readouterr().err
    assert not (tmp_path / "b").exists()


def test_a_model_that_is_no_text_and_of_no_known_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model.bin").write_bytes(b"\xa8\x01")
    assert run(tmp_path / "model.bin", "--device", "npm4k", "-o", tmp_path / "b") == ERRORS_FOUND
    assert "other formats are known by their suffix, as .onnx and .pt2" in capsys.readouterr().err


@pytest.mark.full
def test_layers_that_lose_are_named_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    demo = Path(nacre.__file__).parent / "demo"
    data = ("--precision", "i8", "--calibrate", demo / "calibration.npz")
    assert run(demo / "digits.onnx", "--device", "npm4k", *data, "-o", tmp_path / "b") == OK
    names = [line for line in capsys.readouterr().out.splitlines() if line.startswith("SQNR")]
    assert len(names) == len({line.partition(": ")[2] for line in names}) == 5


def test_a_model_that_came_quantised_is_told_about_integers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    builder = core.Builder()
    steps = (0.1, 3)
    value = builder.input("x", "f32", (4, 8))
    given = builder.constant(np.float32(steps[0])), builder.constant(np.int8(steps[1]))
    stored = builder.add("Quantize", builder.add("Neg", value), *given, to="i8")
    core.save(builder.module(builder.add("Dequantize", stored, *given)), tmp_path / "q.core")
    told = "note: the model came quantised: i8 takes its integers as they are"
    assert run(tmp_path / "q.core", "--device", "npm4k", "-o", tmp_path / "b") == OK
    assert told in capsys.readouterr().out
    assert run(tmp_path / "q.core", "--device", "npm4k", "--precision", "i8",
               "-o", tmp_path / "c") == OK  # fmt: skip
    assert told not in capsys.readouterr().out


def test_a_folder_of_others_is_left_alone(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    other = tmp_path.parent / "other.core"
    core.save(linear_model(64, 32, 48), other)
    assert run(other, "--device", "npm4k", "-o", tmp_path) == ERRORS_FOUND
    assert "CMP11" in capsys.readouterr().err
    # A file that is read is not written over, forced or not.
    for force in ((), ("--force",)):
        assert run(model, "--device", "npm4k", "-o", tmp_path, *force) == WRONG_USAGE
        assert "is read, and would be overwritten" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert run(other, "--device", "npm4k", "-o", tmp_path, "--force", "--no-reference") == OK
    assert "interface.core" in capsys.readouterr().out
    assert not nacre.Bundle.load(tmp_path).has_reference
    assert model.read_bytes() == before[model]  # nothing of that name was to be written
    assert run(tmp_path / "legal.core", "--device", "npm4k", "-o", tmp_path) == WRONG_USAGE


def test_a_bundle_without_its_model_is_validated_as_far_as_it_goes(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(model, "--device", "npm4k", "-o", tmp_path / "b", "--no-reference") == OK
    capsys.readouterr()
    assert _exit_status(["validate", str(tmp_path / "b")]) == OK
    out = capsys.readouterr().out
    assert "against the legalised module: the same bits" in out
    assert "the bundle was written without the model as it came" in out

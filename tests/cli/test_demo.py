"""`nacre demo`: what it ships is what it says, and the road is walked to its end."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from nacre import Bundle, core
from nacre.cli.calibration import read_calibration
from nacre.cli.demo import run_demo
from nacre.core.builder import Builder
from nacre.core.models import read_model
from tests.cli.runner import invoke, nacre
from tests.compile.models import values

DEMO = Path(str(files("nacre") / "demo"))


# What is shipped


def test_the_files_are_small() -> None:
    assert sum(path.stat().st_size for path in DEMO.iterdir()) < 400_000


def test_the_shipped_model_reads_digits_that_it_was_not_trained_on() -> None:
    module = read_model(DEMO / "digits.core")
    samples = read_calibration(DEMO / "samples.npz")
    found = [int(core.evaluate(module, {"image": x})[0].argmax()) for x in samples["image"]]
    assert sum(a == b for a, b in zip(found, samples["label"], strict=True)) >= 15
    assert len(found) == 16


def test_both_forms_of_the_model_and_onnxruntime_agree() -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(str(DEMO / "digits.onnx"))
    forms = [read_model(DEMO / name) for name in ("digits.onnx", "digits.core")]
    for image in read_calibration(DEMO / "samples.npz")["image"][:4]:
        (expected,) = session.run(None, {"image": image})
        for module in forms:
            np.testing.assert_allclose(
                core.evaluate(module, {"image": image})[0], expected, atol=1e-5
            )


def test_the_model_has_real_structure() -> None:
    module = read_model(DEMO / "digits.core")
    opcodes = {op.opcode for op in module.operations}
    assert {"Conv", "MaxPool", "Linear", "Softmax", "BinOp"} <= opcodes
    depthwise = [op for op in module.operations if op.attributes.get("groups", 1) > 1]
    assert len(depthwise) == 4
    parameters = sum(
        np.prod(op.type.shape) for op in module.operations if op.opcode == "ConstTensor"
    )
    assert 20_000 < parameters < 60_000


def test_calibration_data_and_samples_are_apart() -> None:
    calibration = read_calibration(DEMO / "calibration.npz")["image"]
    samples = read_calibration(DEMO / "samples.npz")["image"]
    assert calibration.shape == (32, 1, 1, 32, 32)
    known = {image.tobytes() for image in calibration}
    assert len(known) == 32
    assert not known & {image.tobytes() for image in samples}


# The road


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A folder like the shipped one, with a model of one layer."""
    folder = tmp_path / "model"
    folder.mkdir()
    builder = Builder()
    x = builder.input("image", "f32", (1, 64))
    made = builder.add("Linear", x, builder.constant(values((10, 64), 1, 0.1)))
    module = builder.module(builder.add("ReluNan", made))
    core.to_onnx(module, folder / "digits.onnx")
    core.save(module, folder / "digits.core")
    images = values((3, 1, 64), 2)
    labels = [int(core.evaluate(module, {"image": image})[0].argmax()) for image in images]
    np.savez(folder / "samples.npz", image=images, label=np.array(labels))
    return folder


def test_the_road_ends_at_a_report_and_a_bundle(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "made" / "here"
    run_demo(small, "npm4k", "f16", out)
    said = capsys.readouterr().out
    for part in (
        "1. import the model", "640 parameters, 640 MACs", "2. compile it",
        "for npm4k in f16: 1 layer",
        "no race in any order", "valid: the plan equals the legalised module",
        "3 of 3 digits that the model has never seen are right; 3 are what the model says",
        "the layer bound", "7. bind it to the hardware", "proved to mean what the plan means",
        "8. write the report", f"{out / 'report.html'}: layers and timeline",
    ):  # fmt: skip
        assert part in said
    assert (out / "report.html").stat().st_size > 10_000
    assert Bundle.load(out / "bundle").manifest.device == "npm4k"


def test_without_onnx_the_model_comes_from_core_ir(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nacre.core.onnx.reading.files.onnx", None)
    run_demo(small, "npm4k", "f16", tmp_path / "made")
    said = capsys.readouterr().out
    stats = json.loads(
        invoke(capsys, "core", "stats", small / "digits.core", "--format", "json").out
    )
    assert f"digits.core: {stats['operations_total']} operations" in said
    converted = invoke(capsys, "core", "convert", small / "digits.core", "-o", tmp_path / "c.core")
    assert f"c.core: {stats['operations_total']} operations" in converted.text


def test_a_place_that_cannot_be_written_is_told_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    done = invoke(capsys, "demo", "-o", tmp_path / "file" / "folder")
    assert done.status == 2
    assert "cannot write" in done.err
    assert "import" not in done.out


@pytest.mark.full
def test_the_demo_runs_from_any_folder_in_less_than_a_minute(tmp_path: Path) -> None:
    done = nacre("demo", cwd=tmp_path)
    assert done.status == 0, done.text
    assert "in i8, calibrated with 32 images" in done.out
    assert "valid: the plan equals the legalised module" in done.out
    right = re.search(r"(\d+) of 16 digits that the model has never seen are right", done.out)
    assert right is not None
    assert int(right[1]) >= 15
    assert (tmp_path / "nacre-demo" / "report.html").exists()
    assert done.cpu_seconds < 60

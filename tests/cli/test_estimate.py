"""`nacre estimate` on the command line."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from nacre.base.diagnostics import InputError
from nacre.cli.calibration import read_calibration
from nacre.cli.compile import compile_
from nacre.cli.estimate import estimate
from nacre.core.builder import Builder
from nacre.core.storage import save
from tests.cli.runner import Outcome, invoke
from tests.compile.models import convolution_model, linear_model

Run = Callable[..., Outcome]


@pytest.fixture
def nacre(capsys: pytest.CaptureFixture[str]) -> Run:
    return partial(invoke, capsys)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.core"
    save(convolution_model(), path)
    return path


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "large.core"
    builder = Builder()
    x = builder.input("x", "f32", (1, 2_000_000))
    save(builder.module(builder.add("Softmax", x, axis=1)), path)
    return path


def test_one_screen_says_what_it_is_about(nacre: Run, model: Path) -> None:
    done = nacre("estimate", str(model), "--device", "npm4k", "--clock", "800")
    assert done.status == 0
    for part in (
        "model.core in f16", "ms at 800 MHz", "over the layer bound", "over the whole bound",
        "MAC utilisation", "DDR traffic", "VPU share", "L2 peak", "conv_0", "assumptions",
    ):  # fmt: skip
        assert part in done.out
    assert len(done.out.splitlines()) < 50


def test_json_has_an_object_for_each_device(nacre: Run, model: Path, large: Path) -> None:
    done = nacre(
        "estimate", str(model), "--device", "npm4k", "--device", "npm64k", "--format", "json"
    )
    found = json.loads(done.out)
    assert list(found) == ["npm4k", "npm64k"]
    for entry in found.values():
        assert {"fits", "cycles", "layer_bound", "whole_bound", "macs_by_unit", "cycles_by_unit",
                "layers"} <= entry.keys()  # fmt: skip
        assert entry["fits"] is True
        assert entry["cycles"] >= entry["whole_bound"]
        assert entry["macs_by_unit"] == {"NMU": 28 * 28 * 32 * 144}
        assert [layer["name"] for layer in entry["layers"]] == ["conv_0"]
    refused = nacre("estimate", str(large), "--device", "npm4k", "--format", "json")
    assert refused.status == 1
    entry = json.loads(refused.out)["npm4k"]
    assert entry["fits"] is False
    assert entry["problems"][0]["code"] == "CMP02"


def test_why_names_the_largest_losses_and_what_helps(nacre: Run, model: Path) -> None:
    done = nacre("estimate", str(model), "--device", "npm4k", "--why")
    assert done.status == 0
    _, _, why = done.out.partition("why ")
    assert " cycles on npm4k: bounds of layers " in why
    assert "the largest\n  1. " in why
    assert "what helps:" in why
    assert "why " not in nacre("estimate", str(model), "--device", "npm4k").out
    told = json.loads(nacre("estimate", str(model), "--device", "npm4k", "--format", "json").out)
    why_json, cycles = told["npm4k"]["why"], told["npm4k"]["cycles"]
    lost = sum(loss["cycles"] for loss in why_json["losses"])
    assert why_json["bound"] + lost - why_json["hidden"] == cycles


def test_the_report_is_a_page_and_of_several_devices_several(
    nacre: Run, model: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    done = nacre("estimate", str(model), "--device", "npm4k", "--report", str(page))
    assert done.status == 0
    assert f"wrote {page}: layers and timeline" in done.out
    assert '"layers":{' in page.read_text(encoding="utf-8")
    nacre("estimate", str(model), "--device", "npm4k", "--device", "npm8k", "--report", str(page))
    assert (tmp_path / "page-npm4k.html").exists()
    assert (tmp_path / "page-npm8k.html").exists()


def test_a_model_that_does_not_fit_gets_no_page(nacre: Run, large: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = nacre("estimate", str(large), "--device", "npm4k", "--report", str(page))
    assert done.status == 1
    assert "wrote" not in done.out
    assert not page.exists()


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--device", "npm5k"], 1, "CMP04"),
        (["--device", "npm4k", "--clock", "0"], 2, "--clock"),
        (["--device", "npm4k", "--layers", "few"], 2, "neither a number nor `all`"),
        (["--device", "npm4k", "--report", "page.txt"], 2, "a report ends in .html"),
        (["--device", "npm4k", "--report", "no/such/page.html"], 2, "is no folder"),
        (["--device", "npm4k", "--calibrate", "x.npz"], 2, "--calibrate is for integers"),
        (["--device", "npm4k", "--shape", "image=1x1"], 1, "the shapes of a module"),
        ([], 2, "--device"),
    ],
)
def test_wrong_usage_is_told(
    nacre: Run, model: Path, arguments: list[str], status: int, said: str
) -> None:
    done = nacre("estimate", str(model), *arguments)
    assert done.status == status
    assert said in done.out + done.err


def test_a_missing_model_is_wrong_usage(nacre: Run) -> None:
    done = nacre("estimate", "missing.onnx", "--device", "npm4k")
    assert done.status == 2
    assert "missing.onnx" in done.err


def test_integers_are_calibrated_with_data_or_timed_with_random_ranges(
    nacre: Run, model: Path, tmp_path: Path
) -> None:
    asked = ("estimate", str(model), "--device", "npm4k", "--precision", "i8", "--format", "json")
    plain = nacre(*asked)
    assert plain.status == 0, plain.text
    assert "random inputs" in "\n".join(json.loads(plain.out)["npm4k"]["assumptions"])
    data = tmp_path / "data.npz"
    np.savez(data, image=np.random.default_rng(1).random((3, 1, 28, 28, 16), np.float32))
    given = nacre(*asked, "--calibrate", str(data))
    assert given.status == 0, given.text
    found = json.loads(given.out)["npm4k"]
    assert "the data that was given" in "\n".join(found["assumptions"])
    assert found["cycles"] == json.loads(plain.out)["npm4k"]["cycles"]
    np.savez(data, picture=np.zeros((3, 1, 28, 28, 16), np.float32))
    wrong = nacre(*asked, "--calibrate", str(data))
    assert wrong.status == 1
    assert {d["code"] for d in json.loads(wrong.out)["diagnostics"]} == {"CMP09"}
    assert "`picture`" in wrong.out


# Calibration data


def test_arrays_of_a_file_are_read_by_name(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    image = np.arange(8, dtype=">f4").reshape(2, 4)
    np.savez(path, image=image, ids=np.zeros((2, 1), np.int64))
    found = read_calibration(path)
    assert found.keys() == {"image", "ids"}
    assert found["image"].dtype == np.float32
    np.testing.assert_array_equal(found["image"], image)


def _pickled(path: Path) -> None:
    np.savez(path, x=np.array([{}], object))


def _huge(path: Path) -> None:
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("x.npy", "w", force_zip64=True) as stream,
    ):
        for _ in range(5 << 5):
            stream.write(bytes(32 << 20))


def _text(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")


def _no_array(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'shape': (1 << 40,)}")


def _no_archive(path: Path) -> None:
    path.write_bytes(b"PK\x03\x04 not really")


def _empty(path: Path) -> None:
    with zipfile.ZipFile(path, "w"):
        pass


@pytest.mark.parametrize("make", [_pickled, _text, _no_array, _no_archive, _empty])
def test_a_file_of_anything_else_is_refused(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "data.npz"
    make(path)
    with pytest.raises(InputError, match=r"data\.npz") as caught:
        read_calibration(path)
    (found,) = caught.value.diagnostics
    assert found.code == "CMP09"
    assert "numpy.savez" in (found.help or "")


@pytest.mark.full
def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    _huge(path)
    with pytest.raises(Exception, match=r"take 5,368,709,120 bytes"):
        read_calibration(path)


def test_an_estimate_takes_the_options_of_compile(nacre: Run, tmp_path: Path) -> None:
    """The same names, the same refusals: both commands read them in one place."""
    shared = {"--precision", "--calibrate", "--observer", "--precision-map", "--ddr-size"}
    for command in (compile_, estimate):
        assert shared <= {option for one in command.params for option in one.opts}
    path = tmp_path / "model.core"
    save(linear_model(8, 16, 16), path)
    asked = ("estimate", str(path), "--device", "npm4k")
    refused = nacre(*asked, "--precision-map", "%2=f16")
    assert refused.status == 2
    assert "--precision-map is for integers" in refused.err
    assert "is not `LAYER=PRECISION`" in nacre(*asked, "--precision-map", "nothing").err
    taken = ("--precision", "i8", "--observer", "minmax", "--precision-map", "%2=f16")
    found = nacre(*asked, *taken)
    assert found.status == 0
    assert "fits" in found.out

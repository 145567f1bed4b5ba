"""Estimates of bundles: those of the model that they were made of, from their own plan."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import nacre
from nacre.base.diagnostics import InputError
from nacre.compile.estimate.layer_times import operation_times
from nacre.compile.options import Precision
from nacre.core.builder import Builder
from nacre.core.module import Module
from tests.cli.runner import Outcome, invoke
from tests.compile.models import convolution_model, linear_model, values

pytestmark = pytest.mark.sampled(2)  # together they take long

Run = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return partial(invoke, capsys)


def inverted_bottleneck() -> Module:
    """Products that run depth first: wide in the middle, narrow at both ends."""
    build = Builder()
    x = build.input("x", "f32", (1, 56, 56, 24))
    wide = build.add("Linear", x, build.constant(values((144, 24), 1, 0.2)))
    wide = build.add("Relu", wide)
    narrow = build.add("Linear", wide, build.constant(values((24, 144), 2, 0.1)))
    return build.module(build.add("BinOp", narrow, x, op="Add"))


def escaping() -> Module:
    """A product, and what only the VPU can do."""
    build = Builder()
    x = build.input("x", "f32", (8, 32))
    y = build.add("MatMul", x, build.constant(values((32, 16), 1, 0.2)))
    return build.module(build.add("ArgMax", y, axis=1))


MODELS: dict[str, tuple[Callable[[], Module], str, Precision]] = {
    "linear": (linear_model, "npm4k", "f16"),
    "convolution": (convolution_model, "npm64k", "f16"),
    "groups": (inverted_bottleneck, "npm4k", "f16"),
    "escaping": (escaping, "npm4k", "f16"),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MODELS)
def test_a_bundle_has_the_estimate_of_its_model(name: str, tmp_path: Path) -> None:
    make, device, precision = MODELS[name]
    module = make()
    expected = nacre.estimate(module, device, precision, clock_mhz=800)
    nacre.compile(module, device, precision).save(tmp_path / "b", reference=name != "linear")
    found = nacre.Bundle.load(tmp_path / "b").estimate(800)
    assert found.as_json() == expected.as_json()
    assert expected.cycles
    if name == "groups":
        assert any(layer.members for layer in found.layers)
    if name == "escaping":
        assert found.escaped


def test_i8_has_the_same_bounds_and_says_whose_scales(tmp_path: Path) -> None:
    module = linear_model()
    data = {"x": values((2, 256, 64), 5)}
    expected = nacre.estimate(module, "npm4k", "i8", calibration=data).as_json()
    bundle = nacre.compile(module, "npm4k", "i8", calibration=data)
    found = bundle.estimate().as_json()
    assert any("scales" in line for line in found.pop("assumptions"))
    expected.pop("assumptions")
    assert found == expected


@pytest.mark.parametrize("name", MODELS)
def test_factors_add_up_to_what_is_derated(name: str) -> None:
    make, device, precision = MODELS[name]
    found = nacre.compile(make(), device, precision).estimate()
    derated = found.as_json()["derated"]
    assert list(derated["added"]) == ["NMU.lanes", "DDR.bandwidth", "DMA.burst"]
    assert found.cycles is not None
    assert found.cycles + sum(derated["added"].values()) == derated["cycles"]
    # The first factor by an independent run: only the array.
    assert found.plan is not None
    alone = found.plan.bundle.time({"NMU": found.derating["NMU"]}).cycles
    assert alone - found.cycles == derated["added"]["NMU.lanes"]


@pytest.mark.parametrize("name", MODELS)
def test_operations_add_up_to_the_run(name: str) -> None:
    make, device, precision = MODELS[name]
    found = nacre.compile(make(), device, precision).estimate()
    rows = operation_times(found.layers)
    assert sum(row.cycles for row in rows) == found.cycles
    assert sum(row.layers for row in rows) == len(found.layers)
    assert sum(row.macs for row in rows) == sum(layer.macs for layer in found.layers)
    assert [row.cycles for row in rows] == sorted((row.cycles for row in rows), reverse=True)
    assert next(row for row in rows if row.macs).operation in ("Conv", "Linear", "MatMul")


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    nacre.compile(convolution_model(), "npm4k").save(tmp_path / "b")
    return tmp_path / "b"


def test_one_screen_of_a_bundle(run: Run, bundle: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = run("estimate", bundle, "--clock", "800", "--report", page)
    assert done.status == 0
    for part in (
        "b in f16", "ms at 800 MHz", "over the layer bound", "NMU as an array", "runs of copies",
        "layers on npm4k", "operations on npm4k", "assumptions", f"wrote {page}",
    ):  # fmt: skip
        assert part in done.out
    assert '"operations":[{"operation":"Conv"' in page.read_text()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--device", "npm4k"), "--device is for models"),
        (("--precision", "f16"), "--precision is for models"),
        (("--shape", "x=1x2"), "--shape is for models"),
        (("--ddr-size", "1G"), "--ddr-size is for models"),
        (("--no-fallback",), "fallback is for models"),
    ],
)
def test_a_bundle_takes_no_options_of_compiling(
    run: Run, bundle: Path, options: tuple[str, ...], said: str
) -> None:
    done = run("estimate", bundle, *options)
    assert done.status == 2
    assert said in done.err


def test_a_model_needs_a_device_and_a_folder_a_bundle(run: Run, tmp_path: Path) -> None:
    assert "Missing option '--device'" in run("estimate", "model.onnx").err
    done = run("estimate", tmp_path)
    assert done.status == 1
    assert "CMP07" in done.err


def test_a_timed_run_of_a_bundle_has_its_layers(run: Run, bundle: Path, tmp_path: Path) -> None:
    x = tmp_path / "x.npy"
    loaded = nacre.Bundle.load(bundle)
    port = loaded.manifest.inputs[0]
    np.save(x, values(port.shape, 3))
    page = tmp_path / "page.html"
    given = ("--input", f"{port.name}={x}", "--mode", "timed", "--report", page)
    done = run("run", bundle, *given)
    assert done.status == 0
    for part in ("layers on npm4k", "operations on npm4k", "the model: "):
        assert part in done.out
    assert '"By operation"' not in done.out
    assert '"derated_cycles":null' in page.read_text()
    found = json.loads(run("run", bundle, *given, "--format", "json").out)
    expected = loaded.estimate().as_json()
    assert found["operations"] == expected["operations"]
    assert found["layers"] == expected["layers"]
    assert found["macs"] == expected["macs"]


def test_layers_of_a_timed_run_follow_its_profile(run: Run, bundle: Path, tmp_path: Path) -> None:
    profile = tmp_path / "slow.json"
    profile.write_text(json.dumps({"NMU": {"fp16_macs": 64}}))
    given = ("--mode", "timed", "--no-values", "--format", "json")
    plain: dict[str, Any] = json.loads(run("run", bundle, *given).out)
    slow = json.loads(run("run", bundle, *given, "--profile", profile).out)

    def bound(found: dict[str, Any]) -> int:
        return sum(layer["bound"] for layer in found["layers"])

    assert slow["cycles"] > plain["cycles"]
    assert bound(slow) > bound(plain)
    assert sum(layer["cycles"] for layer in slow["layers"]) == slow["cycles"]


def test_a_program_alone_has_no_layers(run: Run, bundle: Path) -> None:
    done = run("run", bundle / "model.nem", "--mode", "timed", "--no-values")
    assert "layers on" not in done.out


def test_layers_that_are_nowhere_are_found_when_a_bundle_is_read(tmp_path: Path) -> None:
    made = nacre.compile(linear_model(), "npm4k")
    odd = msgspec.structs.replace(made.manifest, member_values={"conv": (99999,)})
    replace(made, manifest=odd).save(tmp_path / "b")
    with pytest.raises(InputError, match="makes what is nowhere"):
        nacre.Bundle.load(tmp_path / "b")

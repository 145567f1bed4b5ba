"""Bundles in folders: what is loaded is what was saved, and damage is found."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec import NODEFAULT
from msgspec.structs import fields, replace

import nacre
from nacre.base.diagnostics import InputError
from nacre.compile.bundle.manifest import Manifest
from nacre.compile.storage.folder import _manifest_hash, _sign
from tests.compile.models import convolution_model, inputs_of

pytestmark = pytest.mark.sampled(2)  # together they take long


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    nacre.compile(convolution_model(), "npm4k").save(tmp_path / "bundle")
    return tmp_path / "bundle"


def test_a_bundle_survives_its_folder(folder: Path) -> None:
    module = convolution_model()
    made, loaded = nacre.compile(module, "npm4k"), nacre.Bundle.load(folder)
    assert loaded.program == made.program
    assert loaded.weights == made.weights
    assert loaded.manifest == made.manifest
    inputs = inputs_of(module)
    assert np.array_equal(loaded.run(inputs)["output0"], made.run(inputs)["output0"])
    assert loaded.validate(inputs).ok
    assert loaded.time().cycles == made.time().cycles


def test_the_folder_holds_what_the_design_names(folder: Path) -> None:
    names = {path.name for path in folder.iterdir()}
    assert {"model.nem", "manifest.json", "model.core", "legal.core"} <= names
    (weights,) = folder.glob("weights.*.safetensors")
    assert hashlib.sha256(weights.read_bytes()).hexdigest().startswith(weights.suffixes[0][1:])
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["device"] == "npm4k"
    assert manifest["inputs"][0] == {
        "name": "image",
        "buffer": "image_DDR",
        "dtype": "f32",
        "shape": [1, 28, 28, 16],
        "elem": "f16",
        "scale": None,
        "zero": None,
        "axes": None,
    }


@pytest.mark.parametrize(
    "name", ["model.nem", "weights.*.safetensors", "manifest.json", "model.core", "legal.core"]
)
@pytest.mark.parametrize("damage", ["missing", "cut", "changed", "empty"])
def test_damage_is_found(folder: Path, name: str, damage: str) -> None:
    (path,) = folder.glob(name)
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        swapped = content.replace(b"1", b"2", 1).replace(b"format", b"fromat")
        path.write_bytes(swapped if swapped != content else content + b" ")
    with pytest.raises(InputError) as caught:
        nacre.Bundle.load(folder)
    assert [d.code for d in caught.value.diagnostics] == ["CMP07"]
    assert path.name in caught.value.diagnostics[0].message


def test_saving_again_replaces_the_bundle(folder: Path) -> None:
    other = nacre.compile(convolution_model(strides=(2, 2)), "npm4k")
    other.save(folder)
    assert nacre.Bundle.load(folder).program == other.program


@pytest.mark.parametrize(
    "name",
    ["model.core", "model.core.*.safetensors", "legal.core", "weights.*.safetensors"],
)
def test_another_model_beside_the_plan_is_found(folder: Path, name: str) -> None:
    (path,) = folder.glob(name)
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        nacre.Bundle.load(folder)
    assert [d.code for d in caught.value.diagnostics] == ["CMP07"]


Change = Callable[[dict[str, Any]], object]


def changed(folder: Path, change: Change, *, is_signed: bool) -> InputError:
    """What is said of a bundle whose manifest was changed; signed, by somebody who knows how."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    text = json.dumps(manifest).encode()
    try:
        signed = msgspec.json.encode(_sign(msgspec.json.decode(text, type=Manifest)))
    except msgspec.DecodeError:
        signed = text
    path.write_bytes(signed if is_signed else text)
    with pytest.raises(InputError) as caught:
        nacre.Bundle.load(folder)
    return caught.value


def _set(*path: str | int) -> Callable[[object], Change]:
    """A change of one entry."""

    def to(value: object) -> Change:
        def change(manifest: dict[str, Any]) -> None:
            part: Any = manifest
            for key in path[:-1]:
                part = part[key]
            part[path[-1]] = value

        return change

    return to


_RESULT = ("layers", 0, "results", 0)
CHANGES: dict[str, Change] = {
    "weights nowhere": _set("weights")(None),
    "weights in another buffer": _set("weights")("image_DDR"),
    "no inputs": _set("inputs")([]),
    "no outputs": _set("outputs")([]),
    "another shape": _set("outputs", 0, "shape")([]),
    "no element type": _set("outputs", 0, "elem")("x"),
    "another type in memory": _set("outputs", 0, "elem")("i16"),
    "another type in the model": _set("outputs", 0, "dtype")("f64"),
    "no buffer": _set("outputs", 0, "buffer")("nowhere"),
    "another input": _set("inputs", 0, "name")("other"),
    "an input without a name": _set("inputs", 0, "name")(""),
    "an output without a name": _set("outputs", 0, "name")(""),
    "a scale without a zero point": _set("inputs", 0, "scale")(0.5),
    "axes of no order": _set("inputs", 0, "axes")([0, 1, 2, 2]),
    "axes beyond the shape": _set("outputs", 0, "axes")([0, 1, 2, 4]),
    "too few axes": _set("inputs", 0, "axes")([0, 1]),
    "axes in an order that the plan does not have": _set("inputs", 0, "axes")([0, 3, 1, 2]),
    "a scale of floats": lambda m: m["inputs"][0].update(scale=0.5, zero=0),
    "tasks that make nothing": _set("layers", 0, "values")({"conv_0_ct0": 999}),
    "a load that makes a value": lambda m: m["layers"][0]["values"].update(
        {m["layers"][0]["loads"][0]: m["layers"][0]["operations"][0]["legal"]}
    ),
    "a result before its buffer": _set(*_RESULT, "offset")(-1),
    "a result behind its buffer": _set(*_RESULT, "offset")(10**15),
    "a result far away": _set(*_RESULT, "offset")(10**30),
    "a result of no type": _set(*_RESULT, "elem")("x"),
    "a result of another type": _set(*_RESULT, "elem")("u8"),
    "a result of another shape": _set(*_RESULT, "shape")([28, 28, 32]),
    "a result of other strides": _set(*_RESULT, "strides")([0, 0, 0, 0]),
    "a result of few strides": _set(*_RESULT, "strides")([1]),
    "a result in no buffer": _set(*_RESULT, "buffer")("nowhere"),
    "a result that is the input": _set(*_RESULT, "value")(0),
    "a result of no value": _set(*_RESULT, "value")(999),
    "no results": _set("layers", 0, "results")([]),
    "a layer without a name": _set("layers", 0, "name")(""),
    "a layer without tasks": _set("layers", 0, "tasks")([]),
    "tasks that are not there": _set("layers", 0, "tasks")(["t"]),
    "a task too many": lambda m: m["layers"][0]["tasks"].append("conv_9_c"),
    "a task too few": lambda m: m["layers"][0]["tasks"].pop(),
    "a task twice": lambda m: m["layers"][0]["tasks"].append(m["layers"][0]["tasks"][0]),
    "no layers": _set("layers")([]),
    "a layer twice": lambda m: m["layers"].append(m["layers"][0]),
    "MACs below none": _set("layers", 0, "macs")(-1),
    "an operation of another kind": _set("layers", 0, "operations", 0, "opcode")("Relu"),
    "an operation from nowhere": _set("layers", 0, "operations", 0, "legal")(999),
    "an origin that is nowhere": _set("layers", 0, "operations", 0, "source")(999),
    "a state": _set("states")([{"input": "image", "output": 0}]),
    "another format": _set("format")(99),
    "no precision": _set("precision")("f8"),
    "no device": _set("device")("npm4q"),
    "another device": _set("device")("npm16k"),
    "no DDR": _set("ddr_bytes")(0),
    "DDR below none": _set("ddr_bytes")(-1),
    "DDR without end": _set("ddr_bytes")(10**40),
    "DDR too small": _set("ddr_bytes")(4096),
    "L2 below none": _set("l2_peak")(-1),
    "L2 below its bound": _set("l2_bound")(1 << 40),
    "a negative bound": _set("l2_bound")(-64),
    "a word for a number": _set("l2_peak")("much"),
    "an entry too many": _set("more")(1),
}


# Manifests of all versions have what has no default.
LATER = sorted(f.name for f in fields(Manifest) if f.default is not NODEFAULT)


def test_a_manifest_from_before_an_entry_was_added_is_still_whole(folder: Path) -> None:
    path = folder / "manifest.json"
    made = nacre.Bundle.load(folder).manifest
    older = json.loads(path.read_text())
    absent = [
        name for name in LATER if name not in ("format", "stored") and older[name] in (None, [], {})
    ]
    for name in absent:
        del older[name]
    assert absent
    older["sha256"]["manifest.json"] = _manifest_hash(older)
    path.write_text(json.dumps(older))
    assert replace(nacre.Bundle.load(folder).manifest, sha256={}) == replace(made, sha256={})


@pytest.mark.sampled(4)
@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_a_manifest_that_contradicts_the_rest_is_refused(folder: Path, change: Change) -> None:
    (found,) = changed(folder, change, is_signed=True).diagnostics
    assert found.code == "CMP07"
    assert "manifest.json" in found.message
    assert "was changed" not in found.message


@pytest.mark.parametrize("port", ["inputs", "outputs"])
@pytest.mark.parametrize(("entry", "value"), [("scale", 0.125), ("zero", 3), ("name", "x")])
def test_numbers_that_make_sense_were_still_changed(
    tmp_path: Path, port: str, entry: str, value: object
) -> None:
    module = convolution_model()
    folder = tmp_path / "bundle"
    nacre.compile(module, "npm4k", "i8", calibration=[inputs_of(module)]).save(folder)
    (found,) = changed(folder, _set(port, 0, entry)(value), is_signed=False).diagnostics
    assert found.code == "CMP07"
    assert found.message == "manifest.json was changed after it was written"


@pytest.mark.parametrize("port", ["inputs", "outputs"])
@pytest.mark.parametrize("zero", [-129, 128, 10**12])
def test_a_zero_point_beyond_its_type_is_refused(tmp_path: Path, port: str, zero: int) -> None:
    module = convolution_model()
    folder = tmp_path / "bundle"
    nacre.compile(module, "npm4k", "i8", calibration=[inputs_of(module)]).save(folder)
    (found,) = changed(folder, _set(port, 0, "zero")(zero), is_signed=True).diagnostics
    assert found.code == "CMP07"
    assert f"the zero point {zero}, which i8 does not have" in found.message


def test_a_layer_that_is_not_compared_does_not_count_as_right() -> None:
    # Nothing but the outputs is left to compare: they still tell.
    module = convolution_model()
    right = nacre.compile(module, "npm4k")
    spoilt = bytearray(right.weights)
    spoilt[1] ^= 0x40
    for layers in ((), tuple(replace(layer, results=()) for layer in right.manifest.layers)):
        silent = replace(right.manifest, layers=layers)
        wrong = nacre.Bundle(module, right.program, bytes(spoilt), silent, right.legal)
        assert wrong.validate(inputs_of(module)).first_difference is not None

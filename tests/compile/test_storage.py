"""Bundles in folders: what is loaded is what was saved, and damage is found."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import nacre
from nacre.base.diagnostics import InputError
from tests.compile.models import convolution_model, inputs_of


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
    assert {"model.nem", "weights.safetensors", "manifest.json"} <= names
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["device"] == "npm4k"
    assert manifest["inputs"][0] == {
        "name": "image",
        "buffer": "image_DDR",
        "dtype": "f32",
        "shape": [1, 28, 28, 16],
        "elem": "f16",
    }


@pytest.mark.parametrize("name", ["model.nem", "weights.safetensors", "manifest.json"])
@pytest.mark.parametrize("damage", ["missing", "cut", "changed", "empty"])
def test_damage_is_found(folder: Path, name: str, damage: str) -> None:
    path = folder / name
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        path.write_bytes(content.replace(b"1", b"2", 1).replace(b"format", b"fromat"))
    with pytest.raises(InputError) as caught:
        nacre.Bundle.load(folder)
    assert [d.code for d in caught.value.diagnostics] == ["CMP07"]
    assert name in caught.value.diagnostics[0].message


def test_saving_again_replaces_the_bundle(folder: Path) -> None:
    other = nacre.compile(convolution_model(strides=(2, 2)), "npm4k")
    other.save(folder)
    assert nacre.Bundle.load(folder).program == other.program


@pytest.mark.parametrize("name", ["model.core", "model.core.safetensors"])
def test_another_model_beside_the_plan_is_found(folder: Path, name: str) -> None:
    content = bytearray((folder / name).read_bytes())
    content[-3] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        nacre.Bundle.load(folder)
    assert [d.code for d in caught.value.diagnostics] == ["CMP07"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("weights",), None),
        (("weights",), "image_DDR"),
        (("inputs",), []),
        (("outputs",), []),
        (("outputs", 0, "shape"), []),
        (("outputs", 0, "elem"), "x"),
        (("outputs", 0, "dtype"), "f64"),
        (("outputs", 0, "buffer"), "nowhere"),
        (("inputs", 0, "name"), "other"),
        (("layers", 0, "result", "offset"), -1),
        (("layers", 0, "result", "offset"), 10**30),
        (("layers", 0, "result", "elem"), "x"),
        (("states",), [{"input": "image", "output": 0}]),
        (("format",), 99),
        (("precision",), "f8"),
    ],
)
def test_a_manifest_that_contradicts_the_rest_is_refused(
    folder: Path, path: tuple[str | int, ...], value: object
) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    part = manifest
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError) as caught:
        nacre.Bundle.load(folder)
    assert [d.code for d in caught.value.diagnostics] == ["CMP07"]

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

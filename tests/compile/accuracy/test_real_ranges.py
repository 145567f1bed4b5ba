"""Trained models that leave f16, or take logarithms of small powers: valid at f16 all the same."""

from __future__ import annotations

import numpy as np
import pytest

import nacre
from nacre.core.onnx.importer import from_onnx
from nacre.core.values import Array
from tools.fetch_models import Unavailable, model_path

pytestmark = pytest.mark.full


def tones(noise: float) -> Array:
    """Half a second of some tones, and noise."""
    time = np.arange(8000) / 16000
    loud = sum(np.sin(2 * np.pi * f * time) / (k + 1) for k, f in enumerate((220, 440, 1320, 2500)))
    random = np.random.default_rng(0).normal(0, noise, 8000)
    made: Array = (0.3 * loud + random).astype(np.float32)[None]
    return made


def path_of(name: str) -> str:
    try:
        return str(model_path(name))
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("name", ["gigaam_v3", "nemo80", "kaldi"])
def test_features_of_tones(name: str) -> None:
    shapes = {"waveforms": (1, 8000), "waveforms_lens": (1,)}
    bundle = nacre.compile(from_onnx(path_of(f"logmel-{name}"), shapes), "npm4k")
    for noise in (1e-2, 1e-3, 0.0):
        given = {"waveforms": tones(noise), "waveforms_lens": np.array([8000])}
        found = bundle.validate({key: given[key] for key in bundle.source.input_types})
        assert found.ok, found


def test_a_classifier_whose_dense_layers_leave_f16() -> None:
    line = b"def area(width, height):\n    return width * height  # in pixels\n\n"
    text = np.resize(np.frombuffer(line, np.uint8), (1, 1536)).astype(np.float32)
    bundle = nacre.compile(from_onnx(path_of("magika-old"), {"bytes": (1, 1536)}), "npm4k")
    found = bundle.validate({"bytes": text})
    assert found.ok, found


def harmonics(base: float, rate: int, count: int, noise: float) -> Array:
    """A tone with its harmonics, and noise."""
    time = np.arange(count) / rate
    tone = sum(np.sin(2 * np.pi * base * (k + 1) * time + k) / (k + 1) for k in range(6))
    random = np.random.default_rng(99).normal(0, noise, count)
    made: Array = (0.3 * tone + random).astype(np.float32)
    return made


@pytest.mark.parametrize("device", ["npm4k", "npm16k"])
def test_a_pitch_detector_that_gathers_truth_values(device: str) -> None:
    bundle = nacre.compile(from_onnx(path_of("swift-f0"), {"audio": (1, 4000)}), device)
    for noise, base in ((1e-2, 220.0), (0.0, 317.0)):
        sound = harmonics(base, 16000, 4000, noise)[None]
        limits = {"fmin": np.float32(46.875), "fmax": np.float32(2093.75)}
        found = bundle.validate({"audio": sound, **limits})
        assert found.ok, found


def test_notes_of_a_transcriber() -> None:
    name, count = "serving_default_input_2:0", 43844
    bundle = nacre.compile(from_onnx(path_of("basic-pitch"), {name: (1, count, 1)}), "npm4k")
    for noise in (1e-2, 0.0):
        found = bundle.validate({name: harmonics(220.0, 22050, count, noise)[None, :, None]})
        assert found.ok, found

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

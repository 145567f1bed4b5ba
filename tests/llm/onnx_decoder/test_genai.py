"""Decoders in the forms of onnxruntime-genai, token by token beside onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from nacre.llm.bundle.llm_bundle import LlmBundle, build
from nacre.llm.sources import decoder_of, open_model
from tests.llm.onnx_decoder.graphs import PLACES, VOCABULARY, Form, OnnxRuntime, decoder, greedy

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6, 5]
FORMS = {
    "grouped": Form(),
    "packed": Form(is_packed=True),
    "neighbours turned": Form(interleaved=1),
    "window": Form(window=5),
    "cap": Form(cap=3.0),
    "four bits": Form(bits=4),
    "multi": Form(attention="multi"),
}


def write(model: onnx.ModelProto, folder: Path) -> Path:
    path = folder / "model.onnx"
    onnx.save(model, path)
    return path


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FORMS)
def test_tokens_are_those_of_onnxruntime(name: str, tmp_path: Path) -> None:
    path = write(decoder(FORMS[name]), tmp_path)
    expected = greedy(OnnxRuntime(str(path)).feed, PROMPT, 40)
    assert len(set(expected)) > 3
    runner = decoder_of(open_model(path)).runner(PLACES, 4)
    assert greedy(runner.feed, PROMPT, 40) == expected


@pytest.mark.full
@pytest.mark.parametrize("name", FORMS)
def test_logits_are_those_of_onnxruntime_at_every_place(name: str, tmp_path: Path) -> None:
    path = write(decoder(FORMS[name], seed=1), tmp_path)
    ids = np.random.default_rng(0).integers(0, VOCABULARY, PLACES).tolist()
    reference = OnnxRuntime(str(path))
    expected = np.stack([reference.feed([token]) for token in ids])
    source = decoder_of(open_model(path))
    for chunk in (1, 5, PLACES):
        runner = source.runner(PLACES, chunk)
        found = np.stack([runner.feed([token]) for token in ids])
        assert np.abs(found - expected).max() < 1e-4 * np.abs(expected).max()
        runner.reset()
        at_once = runner.feed(ids)
        assert np.abs(at_once - expected[-1]).max() < 1e-4 * np.abs(expected).max()


@pytest.mark.full
@pytest.mark.parametrize(("name", "precision"), [("grouped", "f16"), ("four bits", "w4f16")])
def test_plans_compute_the_graph(name: str, precision: str, tmp_path: Path) -> None:
    path = write(decoder(FORMS[name]), tmp_path)
    made = build(path, "npm4k", precision, context=PLACES, chunk=4)
    made.save(tmp_path / "bundle")
    loaded = LlmBundle.load(tmp_path / "bundle")
    assert loaded.config == made.config
    reference = OnnxRuntime(str(path))
    expected = reference.feed(PROMPT)
    runner = loaded.runner()
    found = runner.feed(PROMPT)
    for token in (7, 11):
        assert np.abs(found - expected).max() < 0.02 * np.abs(expected).max()
        found, expected = runner.feed([token]), reference.feed([token])

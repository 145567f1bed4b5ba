"""Decoders that `torch.onnx` exported, beside transformers and onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nacre.llm.sources import decoder_of, open_model
from tests.llm.onnx_decoder.exported import export
from tests.llm.onnx_decoder.graphs import OnnxRuntime
from tests.llm.onnx_decoder.graphs import greedy as greedy_of
from tests.llm.transformers_models import VOCABULARY, greedy, random_model

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6, 5]
NAMES = [
    "llama", "mistral window", "qwen2", "qwen3", "gemma", "gemma2", "gpt2", "gptneo", "phi2",
    "phi3", "gptneox", "starcoder2",
]  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_tokens_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    model = random_model(name)
    expected = greedy(model, PROMPT, 200)
    path = export(model, tmp_path / "model.onnx")
    # GPT-Neo's table of masks has 256 rows, for the cache and the step together.
    runner = decoder_of(open_model(path)).runner(252, 4)
    assert greedy_of(runner.feed, PROMPT, 200) == expected


@pytest.mark.full
def test_logits_are_those_of_onnxruntime(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    path = export(random_model("gemma2"), tmp_path / "model.onnx")
    ids = np.random.default_rng(0).integers(0, VOCABULARY, 40).tolist()
    reference, runner = OnnxRuntime(str(path)), decoder_of(open_model(tmp_path)).runner(40, 7)
    for token in ids:
        expected, found = reference.feed([token]), runner.feed([token])
        assert np.abs(found - expected).max() < 1e-4 * np.abs(expected).max()

"""Checkpoints of random models, from memory and from folders, beside transformers itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nacre.base.diagnostics import InputError
from nacre.llm.checkpoint.checkpoint import Checkpoint, checkpoint_of, read_checkpoint
from nacre.llm.model.runner import Decoder
from tests.llm.transformers_models import (
    FAMILIES,
    GQA,
    VOCABULARY,
    all_logits,
    greedy,
    random_model,
)

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6, 5]
LLAMA3 = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}  # fmt: skip
LONG = {"rope_type": "longrope", "short_factor": [1, 1.5, 2, 3], "long_factor": [1.0, 2, 4, 9]}
# What GGUF files say by tensors, or not at all: the class, and what it is told.
MORE: dict[str, tuple[str, Mapping[str, Any]]] = {
    "llama3 scaling": ("LlamaConfig", {**GQA, "rope_scaling": LLAMA3}),
    "linear scaling": (
        "LlamaConfig", {**GQA, "rope_scaling": {"rope_type": "linear", "factor": 4.0}},
    ),
    "phi3 in its long form": (
        "Phi3Config",
        {
            **GQA, "pad_token_id": 0, "original_max_position_embeddings": 64, "rope_scaling": LONG,
        },
    ),
    "phi3 window": ("Phi3Config", {**GQA, "pad_token_id": 0, "sliding_window": 5}),
    "qwen2 windows": (
        "Qwen2Config",
        {**GQA, "use_sliding_window": True, "sliding_window": 6, "max_window_layers": 0},
    ),
    "qwen2 without its window": ("Qwen2Config", {**GQA, "sliding_window": 6}),
    "starcoder2 window": ("Starcoder2Config", {**GQA, "sliding_window": 5}),
    "gpt2 with a head": (
        "GPT2Config",
        {
            "vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256,
            "tie_word_embeddings": False,
        },
    ),
}  # fmt: skip


def other_model(kind: str, settings: Mapping[str, Any]) -> Any:  # noqa: ANN401 - of transformers
    import torch
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, kind)(**settings)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.15 * torch.randn_like(parameter))
    return model.eval().float()


def both_ways(model: Any, folder: Path) -> list[Checkpoint]:  # noqa: ANN401 - of transformers
    model.save_pretrained(folder)
    return [checkpoint_of(model), read_checkpoint(folder)]


@pytest.mark.full
@pytest.mark.parametrize("name", FAMILIES)
def test_tokens_and_logits_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    model = random_model(name)
    expected = greedy(model, PROMPT, 200)
    for checkpoint in both_ways(model, tmp_path):
        runner, tokens = Decoder.from_gguf(checkpoint).runner(256, 4), []
        logits = runner.feed(PROMPT)
        for _ in expected:
            tokens.append(int(logits.argmax()))
            logits = runner.feed(tokens[-1:])
        assert tokens == expected


@pytest.mark.full
@pytest.mark.parametrize("name", MORE)
def test_what_configurations_say_otherwise(name: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    model = other_model(*MORE[name])
    ids = np.random.default_rng(0).integers(0, VOCABULARY, 100).tolist()
    expected = all_logits(model, ids)
    for checkpoint in both_ways(model, tmp_path):
        runner = Decoder.from_gguf(checkpoint).runner(256, 4)
        found = np.stack([runner.feed([token]) for token in ids])
        assert np.abs(found - expected).max() < 1e-4 * np.abs(expected).max()


@pytest.mark.full
@pytest.mark.parametrize(
    ("kind", "settings", "code"),
    [
        ("Gemma3TextConfig", GQA, "LLM01"),
        ("MixtralConfig", GQA, "LLM01"),
        ("LlamaConfig", {**GQA, "rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "LLM05"),
        (
            "Qwen2Config",
            {**GQA, "use_sliding_window": True, "sliding_window": 6, "max_window_layers": 1},
            "LLM05",
        ),
        ("Gemma2Config", {**GQA, "head_dim": 16, "query_pre_attn_scalar": 8}, "LLM05"),
    ],
)
def test_models_that_are_not_built_are_refused(
    kind: str, settings: Mapping[str, Any], code: str
) -> None:
    pytest.importorskip("transformers")
    with pytest.raises(InputError, match=code):
        Decoder.from_gguf(checkpoint_of(other_model(kind, settings)))

"""T5 and Whisper beside transformers: tokens, logits, plans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nacre.llm
from nacre.llm.encoder_decoder.model import EncoderDecoder
from nacre.llm.encoder_decoder.relative import buckets_of
from nacre.llm.encoder_decoder.source import encoder_decoder_of, read_encoder_decoder
from tests.llm.encoder_decoder.models import (
    SETTINGS,
    a_source,
    greedy,
    logits_of,
    random_model,
)

CONTEXT = 208


def models_of(model: Any, folder: Path) -> list[EncoderDecoder]:  # noqa: ANN401 - of transformers
    """The model from memory and from its folder."""
    model.save_pretrained(folder)
    found = [encoder_decoder_of(model), read_encoder_decoder(folder)]
    return [source.decoder for source in found if source is not None]


@pytest.mark.full
@pytest.mark.parametrize("name", SETTINGS)
def test_tokens_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    model, source = random_model(name), a_source(name)
    both = models_of(model, tmp_path)
    assert len(both) == 2
    start = both[0].config.start
    expected = greedy(model, source, start, 200)
    assert len(set(expected)) > 3
    for decoder in both:
        runner = decoder.runner(CONTEXT, 4)
        runner.read(source)
        logits, ids = runner.feed([start]), [start]
        for _ in range(200):
            ids.append(int(logits.argmax()))
            logits = runner.feed(ids[-1:])
        assert ids == expected


@pytest.mark.full
@pytest.mark.parametrize("name", SETTINGS)
def test_prompts_in_chunks_and_sources_one_after_another(name: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    model = random_model(name)
    decoder, _ = models_of(model, tmp_path)
    runner = decoder.runner(40, 7)
    ids = np.random.default_rng(1).integers(0, 29, 33).tolist()
    for scale in (1, 2):
        source = a_source(name)
        source = source[scale:] if isinstance(source, list) else source * scale
        runner.read(source)
        expected = logits_of(model, source, ids)
        found = runner.feed(ids[:20]), runner.feed(ids[20:21]), runner.feed(ids[21:])
        for logits, at in zip(found, (19, 20, 32), strict=True):
            assert np.abs(logits - expected[at]).max() < 1e-4 * np.abs(expected).max()


@pytest.mark.full
@pytest.mark.parametrize("both_ways", [False, True])
@pytest.mark.parametrize(("count", "farthest"), [(32, 128), (8, 20), (64, 1000)])
def test_buckets_are_those_of_transformers(count: int, farthest: int, both_ways: bool) -> None:
    torch = pytest.importorskip("torch")
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5")
    distances = np.arange(-5000, 5001)
    expected = t5.T5Attention._relative_position_bucket(
        torch.from_numpy(-distances), both_ways, count, farthest
    )
    found = buckets_of(distances, count, farthest, both_ways=both_ways)
    assert np.array_equal(found, expected.numpy())


@pytest.mark.full
@pytest.mark.parametrize("precision", ["f16", "w8f16"])
@pytest.mark.parametrize("name", ["t5", "whisper"])
def test_plans_compute_the_model(name: str, precision: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    wide = {"d_model": 128, "d_kv": 32} if name == "t5" else {"d_model": 128}
    # Large weights at random, in unscaled scores, would tell what 8 bits lose many times over.
    model, source = random_model(name, 1.0, **wide), a_source(name)
    made = nacre.llm.build(model, "npm4k", precision, context=32, chunk=4, group_size=64)
    assert (made.weight_losses.products > 0) == (precision == "w8f16")
    made.save(tmp_path / "bundle")
    loaded = nacre.llm.LlmBundle.load(tmp_path / "bundle")
    assert loaded.config == made.config
    assert loaded.time().encoder_cycles > 0
    runner = loaded.source_runner()
    runner.read(source)
    ids = [runner.start, 7, 5, 6, 2, 8]
    expected = logits_of(model, source, ids)
    found = runner.feed(ids[:5]), runner.feed(ids[5:])
    for logits, at in zip(found, (4, 5), strict=True):
        error = np.sqrt(np.mean((logits - expected[at]) ** 2) / np.mean(expected[at] ** 2))
        assert error < (0.02 if precision == "f16" else 0.1)

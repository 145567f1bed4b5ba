"""Steps of a decoder: with a cache, in chunks and at its end they give what NumPy gives without."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from nacre.base.diagnostics import InputError
from nacre.core.constants import constant_array
from nacre.core.verify import verify
from nacre.llm.gguf.file import parse_gguf, read_gguf
from nacre.llm.model.cache import cache_names, row_name
from nacre.llm.model.masks import MASKED
from nacre.llm.model.runner import Decoder
from tests.llm.reference import Sizes, llama_bytes, random_weights, reference_logits

TOKENS = [int(n) for n in np.random.default_rng(5).integers(0, 29, 24)]


def decoder(sizes: Sizes | None = None) -> Decoder:
    return Decoder.from_gguf(parse_gguf(llama_bytes(sizes)))


def close(found: np.ndarray, expected: np.ndarray) -> bool:
    return bool(np.abs(found - expected).max() < 1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("window", [0, 5])
@pytest.mark.parametrize("chunk", [1, 3, 8, 24])
def test_a_prompt_in_chunks_gives_what_numpy_gives_without_a_cache(chunk: int, window: int) -> None:
    sizes = Sizes(window=window)
    expected = reference_logits(random_weights(sizes), sizes, TOKENS)
    runner = decoder(sizes).runner(32, chunk)
    found = runner.feed(TOKENS[:17])
    assert close(found, expected[16])
    for place in range(17, 24):
        assert close(runner.feed([TOKENS[place]]), expected[place])


def test_a_cache_is_used_up_to_its_last_row() -> None:
    sizes = Sizes()
    expected = reference_logits(random_weights(sizes), sizes, TOKENS)
    for chunk in (1, 5, 24):
        runner = decoder(sizes).runner(24, chunk)
        assert close(runner.feed(TOKENS), expected[-1])
        assert runner.remaining == 0
        with pytest.raises(InputError, match="LLM07"):
            runner.feed([1])


def test_a_text_begins_anew_after_a_reset() -> None:
    runner = decoder().runner(32, 4)
    first = runner.feed(TOKENS[:9])
    runner.reset()
    assert np.array_equal(runner.feed(TOKENS[:9]), first)


def test_a_step_moves_a_row_of_the_cache_a_token_and_reads_all_of_it() -> None:
    made = decoder()
    for chunk in (1, 4):
        module = made.step(16, chunk).module
        assert verify(module, profile="nacre-1") == []
        names = cache_names(made.config)
        assert module.output_names == ("logits", *map(row_name, names))
        types = dict(zip(module.output_names, module.output_types, strict=True))
        assert [module.input_types[name].shape for name in names[:2]] == [(2, 4, 16), (2, 16, 4)]
        rows = [types[row_name(name)].shape for name in names[:2]]
        assert rows == [(2, 4, chunk), (2, chunk, 4)]
        assert types["logits"].shape == (1, 29)
        assert "ScatterRows" not in {op.opcode for op in module}


def test_weights_are_shared_between_steps() -> None:
    made = decoder()
    places = []
    for chunk in (1, 4):
        ups = [op for op in made.step(16, chunk).module if op.type.shape == (24, 16)]
        arrays = [array for op in ups if (array := constant_array(op)) is not None]
        places.append({array.ctypes.data for array in arrays})
    assert places[0] == places[1]
    assert len(places[0]) == 4


def test_no_mask_is_infinite_and_none_matters_in_half_precision() -> None:
    assert np.isfinite(np.float16(MASKED))
    assert np.exp(np.float32(MASKED) + np.float32(20_000)) == 0


@pytest.mark.parametrize(("context", "chunk"), [(0, 1), (65, 1), (8, 0), (8, 9)])
def test_sizes_that_cannot_be_are_refused(context: int, chunk: int) -> None:
    with pytest.raises(InputError, match="LLM06"):
        decoder().runner(context, chunk)


@pytest.mark.parametrize("tokens", [[], [1] * 33])
def test_prompts_that_cannot_be_read_are_refused(tokens: list[int]) -> None:
    runner = decoder().runner(32, 4)
    with pytest.raises(InputError, match="LLM07"):
        runner.feed(tokens)
    assert runner.position == 0


FIXTURES = Path(os.environ.get("NACRE_LLM_FIXTURES", "fixtures-not-given"))


@pytest.mark.skipif(not FIXTURES.is_dir(), reason="NACRE_LLM_FIXTURES names no folder")
def test_a_trained_model_goes_on_as_with_transformers() -> None:
    kept = np.load(FIXTURES / "stories260K.npz")
    ids, logits = kept["ids"].tolist(), kept["logits"]
    runner = Decoder.from_gguf(read_gguf(FIXTURES / "stories260K.gguf")).runner(256, 16)
    tokens = ids[:1]
    for place in range(200):
        found = runner.feed(tokens[-1:])
        assert np.abs(found - logits[place]).max() < 1e-3
        tokens.append(int(found.argmax()))
    assert tokens == ids
    runner.reset()
    assert np.abs(runner.feed(ids[:101]) - logits[100]).max() < 1e-3

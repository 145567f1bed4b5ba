"""Every family with random weights: 200 greedy tokens and all logits as transformers has them."""

from __future__ import annotations

import numpy as np
import pytest

from nacre.llm.gguf.file import parse_gguf
from nacre.llm.model.families import FAMILIES as BUILT
from nacre.llm.model.runner import Decoder
from tests.llm.transformers_models import (
    FAMILIES,
    VOCABULARY,
    all_logits,
    gguf_of,
    greedy,
    random_model,
)

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6, 5]
COUNT = 200


def test_every_family_has_a_model_of_transformers() -> None:
    assert {made.architecture for made in FAMILIES.values()} == set(BUILT)


@pytest.mark.full
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", FAMILIES)
def test_tokens_and_logits_are_those_of_transformers(name: str, seed: int) -> None:
    pytest.importorskip("transformers")
    model = random_model(name, seed)
    decoder = Decoder.from_gguf(parse_gguf(gguf_of(model, name)))
    runner = decoder.runner(256, 4)
    logits, tokens = runner.feed(PROMPT), []
    for _ in range(COUNT):
        tokens.append(int(logits.argmax()))
        logits = runner.feed(tokens[-1:])
    assert tokens == greedy(model, PROMPT, COUNT)
    ids = np.random.default_rng(seed).integers(0, VOCABULARY, 40).tolist()
    expected = all_logits(model, ids)
    runner.reset()
    found = np.stack([runner.feed([token]) for token in ids])
    assert np.abs(found - expected).max() < 1e-4 * np.abs(expected).max()

"""Several texts at once: each is what it is alone, however far the others are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nacre.base.diagnostics import InputError
from nacre.llm.bundle.llm_bundle import LlmBundle, build
from nacre.llm.gguf.file import parse_gguf
from nacre.llm.model.cache import cache_names, cache_shape, cache_slices
from nacre.llm.model.runner import Decoder
from tests.llm.letters import LETTER_KEYS, LETTERS
from tests.llm.reference import Sizes, llama_bytes, random_weights, reference_logits

pytestmark = pytest.mark.sampled(2)  # together they take long

FILE = parse_gguf(llama_bytes(LETTERS, pairs=LETTER_KEYS), "letters.gguf")
TEXTS = [[3, 9, 4, 1, 7], [8, 2], [5, 5, 6, 20, 11, 2, 3]]
PROMPTS = ["hello there", "a", "word", "some more"]


@pytest.mark.parametrize("window", [0, 4])
def test_a_step_of_several_texts_gives_what_numpy_gives_for_each(window: int) -> None:
    sizes = Sizes(window=window)
    decoder, rows = Decoder.from_gguf(parse_gguf(llama_bytes(sizes))), 12
    step, config = decoder.step(rows, texts=3).module.session(), decoder.config
    names = cache_names(config)
    caches = {n: np.zeros(cache_shape(config, n, rows, 3), np.float32) for n in names}
    expected = [reference_logits(random_weights(sizes), sizes, text) for text in TEXTS]
    for place in range(7):
        # Texts that have ended are fed anything: nobody looks.
        at = np.array([min(place, len(text) - 1) for text in TEXTS], np.int32)
        tokens = np.array([text[n] for text, n in zip(TEXTS, at, strict=True)], np.int32)
        logits, *made = step.run({"tokens": tokens, "position": at, **caches})
        for number, text in enumerate(TEXTS):
            if place >= len(text):
                continue
            wanted = expected[number][place]
            assert np.abs(logits[number] - wanted).max() < 1e-4 * np.abs(wanted).max()
            for name, new in zip(names, made, strict=True):
                caches[name][number][cache_slices(name, place, place + 1)] = new[number]


def test_several_texts_take_a_token_each() -> None:
    with pytest.raises(ValueError, match="expected one token of each"):
        Decoder.from_gguf(FILE).step(8, 2, texts=2)


@pytest.fixture(scope="module")
def bundle() -> LlmBundle:
    return build(FILE, "npm4k", context=24, chunk=4, batch=3)


@pytest.mark.heavy("three plans are compiled")
def test_texts_are_what_they_are_alone(bundle: LlmBundle) -> None:
    found = bundle.generate_all(PROMPTS, max_tokens=10)  # one more than are written at once
    assert found == [bundle.generate(prompt, max_tokens=10) for prompt in PROMPTS]
    assert bundle.batched is not None
    assert bundle.batched.problems == ()
    assert bundle.generate_all([], max_tokens=3) == []


def test_texts_end_where_the_context_does_and_others_go_on(bundle: LlmBundle) -> None:
    found = bundle.generate_all(["a" * 22, "b"], max_tokens=20, temperature=5.0, seed=3)
    assert found == [
        bundle.generate(prompt, max_tokens=20, temperature=5.0, seed=3)
        for prompt in ("a" * 22, "b")
    ]


def test_a_step_of_several_texts_is_no_longer_than_theirs(
    bundle: LlmBundle, tmp_path: Path
) -> None:
    bundle.save(tmp_path)
    again, time = LlmBundle.load(tmp_path), bundle.time()
    assert again.time() == time
    assert (again.batch, time.batch) == (3, 3)
    assert time.decode_cycles < time.batched_cycles < 3 * time.decode_cycles
    assert time.batched_tokens_per_second > time.tokens_per_second
    assert again.generate_all(PROMPTS[:2], max_tokens=4) == bundle.generate_all(
        PROMPTS[:2], max_tokens=4
    )


def test_a_bundle_without_such_a_plan_says_so(bundle: LlmBundle) -> None:
    single = LlmBundle(bundle.prefill, bundle.decode, 24, 4, bundle.head, bundle.text)
    with pytest.raises(InputError, match=r"LLM09.*no plan of several texts"):
        single.generate_all(["a"])

"""Guesses of a draft: whatever it guesses, a text is what the model writes alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.llm.bundle.llm_bundle import LlmBundle, build
from nacre.llm.bundle.runs import run_of
from nacre.llm.bundle.speculation import Check, SpeculativeRunner, is_close_call
from nacre.llm.gguf.file import GgufFile, parse_gguf
from nacre.llm.model.runner import Decoder, Runner
from nacre.llm.sampling import Sampler, Sampling
from tests.llm.gguf_bytes import ARRAY, Pair
from tests.llm.letters import LETTER_KEYS, LETTERS
from tests.llm.reference import Sizes, llama_bytes

pytestmark = pytest.mark.sampled(2)  # together they take long

CONTEXT = 24
SMALL = Sizes(layers=1, width=16, heads=2, kv_heads=1, ff=24, context=32)


def letters(sizes: Sizes = LETTERS, seed: int = 0) -> GgufFile:
    return parse_gguf(llama_bytes(sizes, seed, LETTER_KEYS), "letters.gguf")


def written(runner: Runner | SpeculativeRunner, prompt: list[int], sampling: Sampling) -> list[int]:
    """Tokens until the context is full."""
    sampler, logits, found = Sampler(sampling), runner.feed(prompt), list[int]()
    while True:
        found.append(sampler.choose(logits))
        if not runner.remaining:
            return found
        logits = runner.feed(found[-1:])


DECODERS = {seed: Decoder.from_gguf(letters(seed=seed)) for seed in range(2)}
RUNNERS = {
    (seed, rows): made.runner(rows, 4) for seed, made in DECODERS.items() for rows in (CONTEXT, 12)
}
CHECKS = {
    seed: Check(4, made.step(CONTEXT, 4, all_logits=True).module.session().run)
    for seed, made in DECODERS.items()
}


@given(
    prompt=st.lists(st.integers(0, 28), min_size=1, max_size=20),
    seeds=st.tuples(st.integers(0, 1), st.integers(0, 1)),
    rows=st.sampled_from([CONTEXT, 12]),
    guesses=st.integers(1, 3),
    temperature=st.sampled_from([0.0, 0.0, 1.0]),
)
@settings(max_examples=25, deadline=None)
def test_whatever_a_draft_guesses_tokens_are_those_of_the_model(
    prompt: list[int], seeds: tuple[int, int], rows: int, guesses: int, temperature: float
) -> None:
    model, draft = RUNNERS[seeds[0], CONTEXT], RUNNERS[seeds[1], rows]
    for runner in (model, draft):
        runner.reset()
    sampling = Sampling(temperature=temperature, seed=7)
    expected = written(model, prompt, sampling)
    model.reset()
    guessed = SpeculativeRunner(model, draft, CHECKS[seeds[0]], guesses)
    for _ in range(2):  # a second text begins anew
        guessed.reset()
        assert written(guessed, prompt, sampling) == expected
        counts = guessed.counts
        assert counts.tokens == len(expected) - 1
        assert counts.accepted <= counts.guessed
        assert counts.tokens <= counts.accepted + counts.checks + counts.singles


def test_a_draft_that_is_the_model_is_always_right() -> None:
    made = DECODERS[0]
    runner = SpeculativeRunner(made.runner(32), made.runner(32), check(made, 32), 3)
    logits = runner.feed([5, 6])
    for _ in range(8):
        logits = runner.feed([int(logits.argmax())])
    counts = runner.counts
    assert counts.checks == 2
    assert (counts.guessed, counts.accepted, counts.accepted_share) == (6, 6, 1.0)


def check(made: Decoder, rows: int) -> Check:
    return Check(4, made.step(rows, 4, all_logits=True).module.session().run)


def test_close_calls_are_those_that_roundings_may_turn() -> None:
    assert is_close_call(np.array([8.0, 7.95, 1.0], np.float32))
    assert not is_close_call(np.array([8.0, 7.5, 1.0], np.float32))
    assert is_close_call(np.array([np.nan, 1.0, 2.0], np.float32))
    assert not is_close_call(np.array([1.0], np.float32))


@pytest.fixture(scope="module")
def bundle() -> LlmBundle:
    return build(letters(), "npm4k", context=CONTEXT, chunk=1, draft_tokens=3)


@pytest.fixture(scope="module")
def draft() -> LlmBundle:
    return build(letters(SMALL), "npm4k", context=CONTEXT, chunk=1)


@pytest.mark.heavy("three plans are compiled")
def test_plans_write_the_same_with_a_draft(bundle: LlmBundle, draft: LlmBundle) -> None:
    for prompt in ("hello there", "a", "some word"):
        alone = bundle.generate(prompt, max_tokens=12)
        for other in (draft, bundle):
            assert bundle.generate(prompt, max_tokens=12, draft=other) == alone
    assert bundle.generate("abc", max_tokens=9, draft=draft, draft_tokens=1) == bundle.generate(
        "abc", max_tokens=9
    )


def test_the_logits_after_each_token_are_those_of_single_steps(bundle: LlmBundle) -> None:
    assert bundle.verify is not None
    tokens, runner, alone = [5, 9, 2, 7], bundle.runner(), bundle.runner()
    runner.feed([3])
    alone.feed([3])
    found = runner.feed_all(tokens, 4, run_of(bundle.verify))
    expected = np.stack([alone.feed([token]) for token in tokens])
    assert np.abs(found - expected).max() < 5e-3 * np.abs(expected).max()
    assert runner.position == alone.position == 5
    assert bundle.verify.problems == ()


def test_what_tokens_took_follows_from_the_steps(bundle: LlmBundle, draft: LlmBundle) -> None:
    runner = bundle.speculative_runner(draft)
    logits = runner.feed([4])
    for _ in range(7):
        logits = runner.feed([int(logits.argmax())])
    time, counts = bundle.speculation_time(runner, draft), runner.counts
    known = bundle.time()
    own = counts.checks * known.verify_cycles + (1 + counts.singles) * known.decode_cycles
    guessing = runner.runners[1].step_counts.total() * draft.time().decode_cycles
    assert time.cycles == own + guessing
    assert time.cycles_per_token == time.cycles / 7
    assert bundle.draft_tokens == 3


def test_the_plan_is_saved_and_loaded(bundle: LlmBundle, draft: LlmBundle, tmp_path: Path) -> None:
    bundle.save(tmp_path)
    again = LlmBundle.load(tmp_path)
    assert again.draft_tokens == 3
    assert again.time() == bundle.time()
    assert again.generate("ab", max_tokens=8, draft=draft) == bundle.generate("ab", max_tokens=8)
    said = json.loads((tmp_path / "llm.json").read_text())
    for wrong in ("../verify", said["decode"], 3):
        (tmp_path / "llm.json").write_text(json.dumps({**said, "verify": wrong}))
        with pytest.raises(InputError, match="LLM08"):
            LlmBundle.load(tmp_path)


def test_drafts_that_cannot_be_are_refused(bundle: LlmBundle, draft: LlmBundle) -> None:
    for count in (0, 4, True, 1.5):
        with pytest.raises(InputError, match=r"LLM09.* takes 1 to 3"):
            bundle.speculative_runner(draft, count)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"LLM09.*no plan that checks"):
        draft.generate("a", draft=bundle)
    other = ["<e>", "<s>", *"abcdefghijklmnopqrstuvwxzy", "Ġ"]
    keys = [
        Pair("tokenizer.ggml.tokens", ARRAY, other) if "tokens" in k.key else k for k in LETTER_KEYS
    ]
    stranger = replace(draft, head=parse_gguf(llama_bytes(SMALL, 0, keys)))
    with pytest.raises(InputError, match=r"LLM09.*differ from id 26 on"):
        bundle.speculative_runner(stranger)


@pytest.mark.parametrize("how", [{"draft_tokens": 24}, {"draft_tokens": -1}, {"batch": 0}])
def test_plans_that_cannot_be_are_refused(how: dict[str, int]) -> None:
    with pytest.raises(InputError, match="LLM06"):
        build(letters(), "npm4k", context=CONTEXT, chunk=1, **how)  # type: ignore[arg-type]

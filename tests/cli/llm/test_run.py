"""`nacre llm run`: text from a small model whose tokens are letters."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.runner import invoke
from tests.llm.gguf_bytes import ARRAY, I32, TEXT, U32, Pair
from tests.llm.reference import Sizes, llama_bytes, random_weights, reference_logits

pytestmark = pytest.mark.sampled(2)  # together they take long

Capsys = pytest.CaptureFixture[str]
TOKENS = ["<e>", "<s>", *"abcdefghijklmnopqrstuvwxy", "Ġ", "z"]
KEYS = [
    Pair("tokenizer.ggml.model", TEXT, "gpt2"),
    Pair("tokenizer.ggml.pre", TEXT, "gpt-2"),
    Pair("tokenizer.ggml.tokens", ARRAY, TOKENS),
    Pair("tokenizer.ggml.token_type", ARRAY, [3, 3, *[1] * 27], I32),
    Pair("tokenizer.ggml.eos_token_id", U32, 0),
    Pair("tokenizer.ggml.bos_token_id", U32, 1),
]
TEMPLATE = "{% for m in messages %}<s>{{ m.content }}{% endfor %}{{ tail }}"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "letters.gguf"
    path.write_bytes(llama_bytes(pairs=KEYS))
    return path


def greedy(ids: list[int], count: int) -> str:
    weights, sizes, text = random_weights(Sizes()), Sizes(), ""
    for _ in range(count):
        token = int(reference_logits(weights, sizes, ids)[-1].argmax())
        if token == 0:
            break
        ids = [*ids, token]
        text += "" if token == 1 else TOKENS[token].replace("Ġ", " ")
    return text


def test_a_prompt_goes_on_as_numpy_says(model: Path, capsys: Capsys) -> None:
    done = invoke(capsys, "llm", "run", model, "--prompt", "hello you", "--max-tokens", "12")
    ids = [TOKENS.index(letter) for letter in "helloĠyou"]
    assert (done.status, done.out) == (0, greedy(ids, 12) + "\n")


def test_a_template_is_used_unless_the_prompt_is_raw(tmp_path: Path, capsys: Capsys) -> None:
    path = tmp_path / "chat.gguf"
    path.write_bytes(llama_bytes(pairs=[*KEYS, Pair("tokenizer.chat_template", TEXT, TEMPLATE)]))
    letters = [TOKENS.index(letter) for letter in "hi"]
    asked = invoke(capsys, "llm", "run", path, "--prompt", "hi", "--max-tokens", "8")
    assert asked.out == greedy([1, *letters], 8) + "\n"
    raw = invoke(capsys, "llm", "run", path, "--raw", "--prompt", "hi", "--max-tokens", "8")
    assert raw.out == greedy(letters, 8) + "\n"


def test_an_empty_prompt_begins_a_text(model: Path, capsys: Capsys) -> None:
    done = invoke(capsys, "llm", "run", model, "--prompt", "", "--max-tokens", "5")
    assert done.out == greedy([1], 5) + "\n"


def test_a_seed_gives_the_same_text(model: Path, capsys: Capsys) -> None:
    how = ("--prompt", "a", "--temperature", "1.5", "--max-tokens", "9", "--seed")
    texts = [invoke(capsys, "llm", "run", model, *how, seed).out for seed in ("4", "4", "5")]
    assert texts[0] == texts[1] != texts[2]


def test_a_prompt_longer_than_the_context_is_refused(model: Path, capsys: Capsys) -> None:
    done = invoke(capsys, "llm", "run", model, "--prompt", "a" * 9, "--context", "8")
    assert done.status == 1
    assert "error[LLM07]: the prompt has 9 tokens, the context is 8" in done.err


def test_a_text_ends_where_the_context_is_full(model: Path, capsys: Capsys) -> None:
    done = invoke(capsys, "llm", "run", model, "--prompt", "abcd", "--context", "6")
    ids = [TOKENS.index(letter) for letter in "abcd"]
    assert done.out == greedy(ids, 3) + "\n"


def test_a_template_that_is_beyond_the_subset_is_refused(tmp_path: Path, capsys: Capsys) -> None:
    path = tmp_path / "evil.gguf"
    evil = Pair("tokenizer.chat_template", TEXT, "{% import 'os' as os %}")
    path.write_bytes(llama_bytes(pairs=[*KEYS, evil]))
    done = invoke(capsys, "llm", "run", path, "--prompt", "a")
    assert done.status == 1
    assert "error[LLM20]" in done.err
    assert "--raw" in done.err


@pytest.mark.heavy("two plans are compiled")
def test_a_folder_runs_by_its_plans_and_says_what_they_take(
    model: Path, tmp_path: Path, capsys: Capsys
) -> None:
    folder = tmp_path / "plans"
    how = ("--device", "npm4k", "--context", "16", "--chunk", "4", "-o", folder)
    assert invoke(capsys, "llm", "build", model, *how).status == 0
    asked = ("--prompt", "hello you", "--max-tokens", "5")
    by_plans = invoke(capsys, "llm", "run", folder, *asked, "--timed")
    assert by_plans.out == invoke(capsys, "llm", "run", model, *asked).out
    assert "ms to the first token after 9, " in by_plans.err


@pytest.mark.full
def test_a_folder_writes_several_texts_and_takes_a_draft(
    model: Path, tmp_path: Path, capsys: Capsys
) -> None:
    folder = tmp_path / "plans"
    how = ("--device", "npm4k", "--context", "16", "--chunk", "1", "-o", folder)
    built = invoke(capsys, "llm", "build", model, *how, "--batch", "2", "--draft-tokens", "2")
    assert "2 texts at once: " in built.out
    assert "checks 2 tokens of a draft in " in built.out
    alone = [
        invoke(capsys, "llm", "run", model, "--prompt", prompt, "--max-tokens", "5").out.strip("\n")
        for prompt in ("hello", "you")
    ]
    both = ("--prompt", "hello", "--prompt", "you", "--max-tokens", "5", "--timed")
    done = invoke(capsys, "llm", "run", folder, *both)
    assert done.out == f"1: {alone[0]}\n2: {alone[1]}\n"
    assert "2 texts at once: " in done.err
    guess = ("--prompt", "hello", "--max-tokens", "5", "--draft", folder, "--timed")
    done = invoke(capsys, "llm", "run", folder, *guess)
    assert done.out == f"{alone[0]}\n"
    assert " guesses accepted (" in done.err
    assert invoke(capsys, "llm", "run", folder, *guess, "--draft-tokens", "3").status == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "{file}", "--prompt", "a", "--timed"),
        ("run", "{file}", "--prompt", "a", "--prompt", "b"),
        ("run", "{file}", "--prompt", "a", "--draft", "{folder}"),
        ("run", "{folder}", "--prompt", "a", "--prompt", "b", "--draft", "{folder}"),
        ("run", "{folder}", "--prompt", "a", "--draft-tokens", "2"),
        ("run", "{folder}", "--prompt", "a", "--context", "8"),
        ("build", "{file}", "--device", "npm4k", "--group-size", "32", "-o", "x"),
    ],
)
def test_options_that_do_not_fit_are_wrong_usage(
    model: Path, tmp_path: Path, capsys: Capsys, arguments: tuple[str, ...]
) -> None:
    named = [part.format(file=model, folder=tmp_path) for part in arguments]
    assert invoke(capsys, "llm", *named).status == 2


def test_a_folder_that_is_no_bundle_is_refused(tmp_path: Path, capsys: Capsys) -> None:
    done = invoke(capsys, "llm", "run", tmp_path, "--prompt", "a")
    assert done.status == 1
    assert "error[LLM08]" in done.err

"""A T5 in a folder: logits beside NumPy's, texts by verbs, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nacre.llm
from nacre.base.diagnostics import InputError
from nacre.llm.chat import TextInterface
from nacre.llm.encoder_decoder.source import EncoderDecoderSource
from nacre.llm.sources import decoder_of, open_model
from tests.cli.runner import invoke
from tests.llm.checkpoint.folders import letter_tokenizer, write_folder
from tests.llm.encoder_decoder.folders import CONFIG, VOCABULARY, reference_logits, t5_arrays

Capsys = pytest.CaptureFixture[str]
SOURCE = [7, 3, 9, 12, 4]
HEADS_OF_BOTH = ("encoder_attention_heads", "decoder_attention_heads")


def folder_with(folder: Path, config: Mapping[str, Any] = CONFIG, **files: Any) -> Path:  # noqa: ANN401
    return write_folder(folder, config, t5_arrays(), **files)


def expected_tokens(source: list[int], count: int) -> list[int]:
    ids = [0]
    for _ in range(count):
        ids.append(int(reference_logits(t5_arrays(), source, ids).argmax()))
    return ids[1:]


def test_logits_are_those_of_loops(tmp_path: Path) -> None:
    file = open_model(folder_with(tmp_path / "t5"))
    assert isinstance(file, EncoderDecoderSource)
    runner = file.decoder.runner(24, 4)
    for source in (SOURCE, SOURCE[:2]):
        runner.read(source)
        ids = np.random.default_rng(2).integers(0, VOCABULARY, 24).tolist()
        for first, last in ((0, 6), (6, 7), (7, 24)):
            found = runner.feed(ids[first:last])
            expected = reference_logits(t5_arrays(), source, ids[:last])
            assert np.abs(found - expected).max() < 1e-4 * np.abs(expected).max()


def test_text_about_a_text(tmp_path: Path, capsys: Capsys) -> None:
    folder = folder_with(tmp_path / "t5", tokenizer=letter_tokenizer())
    text = TextInterface.from_gguf(open_model(folder))
    ids = expected_tokens(text.tokenizer.encode("hello you"), 8)
    end = ids.index(0) if 0 in ids else len(ids)
    done = invoke(capsys, "llm", "run", folder, "--prompt", "hello you", "--max-tokens", "8")
    assert done.status == 0, done.err
    assert done.out.rstrip("\n") == text.tokenizer.decode(ids[:end])
    done = invoke(capsys, "llm", "serve", folder)
    assert "LLM05" in done.err


@pytest.mark.full
def test_plans_write_that_text(tmp_path: Path, capsys: Capsys) -> None:
    folder, made = folder_with(tmp_path / "t5", tokenizer=letter_tokenizer()), tmp_path / "made"
    how = ("--device", "npm4k", "--context", "24", "--chunk", "2", "--source-rows", "12")
    done = invoke(capsys, "llm", "build", folder, *how, "-o", made)
    assert done.status == 0, done.err
    ask = ("--prompt", "hello you", "--max-tokens", "4")
    by_plans, by_model = (invoke(capsys, "llm", "run", one, *ask).out for one in (made, folder))
    assert by_plans == by_model
    bundle = nacre.llm.LlmBundle.load(made)
    assert bundle.generate("hello you", max_tokens=4) == by_model.rstrip("\n")
    assert "LLM05" in invoke(capsys, "llm", "serve", made).err
    with pytest.raises(InputError, match="LLM07"):
        bundle.generate("a" * 13)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"feed_forward_proj": "gated-silu"}, "LLM05"),
        ({"feed_forward_proj": "very-gated-gelu"}, "LLM05"),
        ({"d_model": 0}, "LLM02"),
        ({"d_model": "wide"}, "LLM02"),
        ({"num_layers": True}, "LLM02"),
        ({"num_layers": 2}, "LLM03"),
        ({"d_kv": 16}, "LLM03"),
        ({"layer_norm_epsilon": -1.0}, "LLM02"),
        ({"relative_attention_max_distance": 3}, "LLM02"),
        ({"tie_word_embeddings": "no"}, "LLM02"),
        ({"decoder_start_token_id": VOCABULARY}, "LLM02"),
        ({"quantization_config": {"bits": 4}}, "LLM05"),
        ({"model_type": "whisper", **dict.fromkeys(HEADS_OF_BOTH, 2)}, "LLM03"),
        ({"model_type": "whisper", "scale_embedding": True}, "LLM05"),
        ({"model_type": "whisper", "decoder_attention_heads": 5}, "LLM05"),
        ({"model_type": "bart"}, "LLM01"),
    ],
)
def test_configurations_that_are_refused(
    tmp_path: Path, change: Mapping[str, Any], code: str
) -> None:
    with pytest.raises(InputError, match=code):
        decoder_of(open_model(folder_with(tmp_path / "t5", {**CONFIG, **change})))


def test_weights_that_nobody_uses_are_refused(tmp_path: Path) -> None:
    arrays = {**t5_arrays(), "decoder.more.weight": np.zeros((2, 2), np.float32)}
    with pytest.raises(InputError, match="LLM04"):
        decoder_of(open_model(write_folder(tmp_path / "t5", CONFIG, arrays)))


def test_sources_that_are_refused(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "t5")
    runner = decoder_of(open_model(folder)).runner(8)
    for source in ([], [1] * 129, np.zeros((3, 4), np.float32), np.zeros(4, np.float32)):
        with pytest.raises(InputError, match="LLM07"):
            runner.read(source)  # type: ignore[union-attr]
    for rows in (0, 5000, "many"):
        with pytest.raises(InputError, match="LLM06"):
            nacre.llm.build(folder, "npm4k", source_rows=rows)  # type: ignore[arg-type]

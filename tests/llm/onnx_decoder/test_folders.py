"""Folders with a graph, a tokenizer and settings: what verbs do with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest

import nacre.llm
from nacre.base.diagnostics import InputError
from nacre.llm.chat import TextInterface
from nacre.llm.sources import open_model
from tests.cli.runner import invoke
from tests.llm.checkpoint.folders import letter_tokenizer
from tests.llm.onnx_decoder.graphs import Form, OnnxRuntime, decoder, greedy

Capsys = pytest.CaptureFixture[str]
SETTINGS = {"model": {"context_length": 48, "type": "llama"}}


def folder_with(folder: Path, settings: object = SETTINGS, **config: Any) -> Path:  # noqa: ANN401
    folder.mkdir(exist_ok=True)
    onnx.save(decoder(Form()), folder / "model.onnx")
    (folder / "tokenizer.json").write_text(json.dumps(letter_tokenizer()), encoding="utf-8")
    (folder / "genai_config.json").write_text(json.dumps(settings), encoding="utf-8")
    if config:
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def text_of_onnxruntime(folder: Path, prompt: str, count: int) -> str:
    text = TextInterface.from_gguf(open_model(folder))
    tokens = greedy(OnnxRuntime(str(folder / "model.onnx")).feed, text.prompt_ids(prompt), count)
    ends = [at for at, token in enumerate(tokens) if token in text.tokenizer.ends]
    return text.tokenizer.decode(tokens[: min(ends, default=count)])


def test_text_is_that_of_onnxruntime(tmp_path: Path, capsys: Capsys) -> None:
    folder = folder_with(tmp_path / "model")
    expected = text_of_onnxruntime(folder, "ab", 6)
    assert len(expected) > 1
    for given in (folder, folder / "model.onnx"):
        done = invoke(capsys, "llm", "run", given, "--prompt", "ab", "--max-tokens", "6")
        assert done.status == 0, done.err
        assert done.out.rstrip("\n") == expected


@pytest.mark.full
def test_plans_write_that_text(tmp_path: Path, capsys: Capsys) -> None:
    folder, made = folder_with(tmp_path / "model"), tmp_path / "made"
    how = ("--device", "npm4k", "--context", "32", "--chunk", "4", "-o", made)
    done = invoke(capsys, "llm", "build", folder, *how)
    assert done.status == 0, done.err
    done = invoke(capsys, "llm", "run", made, "--prompt", "ab", "--max-tokens", "6", "--timed")
    assert done.out.rstrip("\n") == text_of_onnxruntime(folder, "ab", 6)
    assert "tokens/s" in done.err
    assert "onnx.block_count" in invoke(capsys, "llm", "info", made).out


def test_info_says_what_the_graph_is(tmp_path: Path, capsys: Capsys) -> None:
    folder = folder_with(tmp_path / "model", max_position_embeddings=40)
    done = invoke(capsys, "llm", "info", folder, "--format", "json")
    said = json.loads(done.out)["metadata"]
    assert (said["onnx.context_length"], said["onnx.block_count"]) == (40, 2)


def test_contexts_end_where_settings_say(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="LLM06"):
        nacre.llm.build(folder_with(tmp_path / "model"), "npm4k", context=49)


@pytest.mark.parametrize("count", [0, True, "many", 1 << 40])
def test_odd_settings_are_refused(tmp_path: Path, count: object) -> None:
    settings = {"model": {"context_length": count}}
    with pytest.raises(InputError, match="LLM02"):
        open_model(folder_with(tmp_path / "model", settings))


def test_what_needs_a_family_is_refused(tmp_path: Path, capsys: Capsys) -> None:
    folder = folder_with(tmp_path / "model", model_type="llama")
    done = invoke(capsys, "nac", "build", folder, "-o", tmp_path / "model.nac")
    assert done.status == 1
    assert "LLM05" in done.err, done.err

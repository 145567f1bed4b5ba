"""`nacre llm estimate`: what it says of a configuration, side by side for devices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.runner import invoke
from tests.llm.reference import llama_bytes

Capsys = pytest.CaptureFixture[str]
LLAMA_8B = {
    "model_type": "llama",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14_336,
    "vocab_size": 128_256,
    "max_position_embeddings": 131_072,
}


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA_8B), encoding="utf-8")
    return path


def test_devices_are_compared(large: Path, capsys: Capsys) -> None:
    how = ("--device", "npm4k", "--device", "npm64k", "--precision", "w4f16", "--ddr-size", "8G")
    done = invoke(capsys, "llm", "estimate", large, *how)
    assert done.status == 0, done.err
    assert "8,030,261,248 parameters" in done.out
    assert "npm4k" in done.out
    assert "npm64k" in done.out


def test_a_model_that_does_not_fit_is_an_error(large: Path, capsys: Capsys) -> None:
    done = invoke(capsys, "llm", "estimate", large, "--device", "npm4k", "--format", "json")
    assert done.status == 1
    (one,) = json.loads(done.out)["devices"]
    assert not one["fits"]
    assert one["decode"][-1]["context"] == 2048
    assert [step["tokens"] for step in one["prefill"]] == [128, 1024]


def test_a_file_needs_no_weights(tmp_path: Path, capsys: Capsys) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(llama_bytes())
    done = invoke(capsys, "llm", "estimate", path, "--device", "npm4k", "--context", "64")
    assert done.status == 0
    assert "fits" in done.out


def test_a_context_beyond_what_the_model_knows_is_refused(large: Path, capsys: Capsys) -> None:
    done = invoke(capsys, "llm", "estimate", large, "--device", "npm4k", "--context", "200000")
    assert done.status == 1
    assert "error[LLM06]: the context is 200,000, expected 1 to 131,072" in done.err


def test_a_configuration_that_is_not_there_is_wrong_usage(tmp_path: Path, capsys: Capsys) -> None:
    done = invoke(capsys, "llm", "estimate", tmp_path / "config.json", "--device", "npm4k")
    assert done.status == 2


def test_a_context_that_nobody_names_is_within_what_the_model_knows(
    tmp_path: Path, capsys: Capsys
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA_8B | {"max_position_embeddings": 600}), encoding="utf-8")
    done = invoke(capsys, "llm", "estimate", path, "--device", "npm4k", "--format", "json")
    assert [step["context"] for step in json.loads(done.out)["devices"][0]["decode"]] == [128, 600]


def test_precisions_have_the_names_of_others_too(large: Path, capsys: Capsys) -> None:
    ours, theirs = (
        invoke(capsys, "llm", "estimate", large, "--device", "npm4k", "--precision", name).out
        for name in ("w4f16", "w4a16")
    )
    assert ours == theirs
    assert "w4f16" in theirs


def test_the_verb_of_all_models_says_the_same(large: Path, capsys: Capsys) -> None:
    how: list[str | Path] = [
        large,
        "--device",
        "npm4k",
        "--device",
        "npm64k",
        "--context",
        "4096",
        "--clock",
        "800",
    ]
    how += ["--precision", "w4a16", "--group-size", "32", "--ddr-size", "8G"]
    for form in ("text", "json"):
        ours = invoke(capsys, "llm", "estimate", *how, "--format", form)
        all_models = invoke(capsys, "estimate", *how, "--format", form)
        assert all_models.status == ours.status == 0
        assert all_models.out == ours.out


def test_a_file_is_estimated_by_the_verb_of_all_models(tmp_path: Path, capsys: Capsys) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(llama_bytes())
    done = invoke(capsys, "estimate", path, "--device", "npm4k", "--context", "64")
    assert done.status == 0
    assert "fits" in done.out


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (("--why",), "--why is for plans: of a language model bounds are given"),
        (("--shape", "x=1"), "--shape is for plans"),
        (("--precision", "f32"), "estimated at f16, w8f16, w4f16, i8"),
        (("--group-size", "32"), "--group-size is for w8f16 and w4f16"),
    ],
)
def test_what_is_for_plans_is_wrong_usage(
    large: Path, capsys: Capsys, how: tuple[str, ...], said: str
) -> None:
    done = invoke(capsys, "estimate", large, "--device", "npm4k", *how)
    assert done.status == 2
    assert said in " ".join(done.err.split())


def test_a_context_is_for_language_models(tmp_path: Path, capsys: Capsys) -> None:
    done = invoke(capsys, "estimate", tmp_path / "m.onnx", "--device", "npm4k", "--context", "8")
    assert done.status == 2
    assert "--context is for language models" in done.err

"""Tokenizers and templates of folders: ids as the files say, and text from plans."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nacre.base.diagnostics import InputError
from nacre.llm.bundle.llm_bundle import LlmBundle, build
from nacre.llm.chat import TextInterface
from nacre.llm.checkpoint.checkpoint import read_checkpoint
from nacre.llm.gguf.info import metadata_json
from nacre.llm.tokenizer.tokenizer import Tokenizer
from tests.cli.runner import invoke
from tests.llm.checkpoint.folders import (
    letter_tokenizer,
    llama_arrays,
    llama_config,
    write_folder,
)
from tests.llm.letters import LETTERS as SIZES

pytestmark = pytest.mark.sampled(2)  # together they take long

Capsys = pytest.CaptureFixture[str]
TEMPLATE = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}"
SETTINGS = {"bos_token": "<s>", "eos_token": {"content": "<e>"}, "chat_template": TEMPLATE}


def folder_with(path: Path, said: dict[str, Any] | None = None, **files: Any) -> Path:  # noqa: ANN401
    config = llama_config(SIZES, **files.pop("config", {}))
    tokenizer = letter_tokenizer() if said is None else said
    return write_folder(path, config, llama_arrays(SIZES), tokenizer=tokenizer, **files)


def tokenizer_of(path: Path) -> Tokenizer:
    return Tokenizer.from_gguf(read_checkpoint(path))


def test_ids_are_those_of_the_file(tmp_path: Path) -> None:
    tokenizer = tokenizer_of(folder_with(tmp_path, tokenizer_config=SETTINGS))
    assert tokenizer.encode("ab z") == [2, 3, 28, 27]
    assert tokenizer.decode([2, 3, 28, 27, 0]) == "ab z"
    assert tokenizer.ends == {0}
    # Names of control tokens are such in what a template writes, and letters in a prompt.
    assert tokenizer.encode("a<e>", parse_special=True) == [2, 0]
    assert 0 not in tokenizer.encode("se")


@pytest.mark.parametrize(("side", "ids"), [("lstrip", [2, 0, 28, 3]), ("rstrip", [2, 28, 0, 3])])
def test_control_tokens_of_templates_take_white_space_along(
    tmp_path: Path, side: str, ids: list[int]
) -> None:
    said = letter_tokenizer()
    said["added_tokens"][0][side] = True
    assert tokenizer_of(folder_with(tmp_path, said)).encode("a <e> b", parse_special=True) == ids


@pytest.mark.parametrize(
    "name", ["tokenizer.json", "tokenizer_config.json", "generation_config.json",
             "chat_template.jinja"],
)  # fmt: skip
def test_files_that_lead_nowhere_are_refused(tmp_path: Path, name: str) -> None:
    folder_with(tmp_path)
    (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / name).symlink_to(tmp_path / "gone")
    with pytest.raises(InputError, match="the file does not exist"):
        read_checkpoint(tmp_path)


def test_a_template_begins_texts_itself(tmp_path: Path) -> None:
    text = TextInterface.from_gguf(
        read_checkpoint(folder_with(tmp_path, tokenizer_config=SETTINGS))
    )
    assert text.prompt_ids("ab") == [1, 2, 3]


def test_the_file_of_a_template_stands_before_the_settings(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, tokenizer_config=SETTINGS, chat_template="z{{ bos_token }}")
    assert TextInterface.from_gguf(read_checkpoint(folder)).prompt_ids("ab") == [27, 1]


def test_of_several_templates_the_default_is_taken(tmp_path: Path) -> None:
    rows = [{"name": "tools", "template": "q"}, {"name": "default", "template": "z"}]
    folder = folder_with(tmp_path, tokenizer_config={**SETTINGS, "chat_template": rows})
    assert TextInterface.from_gguf(read_checkpoint(folder)).prompt_ids("ab") == [27]


@pytest.mark.parametrize(
    ("processor", "ids"),
    [
        (None, [2]),
        ({"type": "ByteLevel"}, [2]),
        ({"type": "RobertaProcessing", "sep": ["<e>", 0], "cls": ["<s>", 1]}, [1, 2, 0]),
        (
            {
                "type": "Sequence",
                "processors": [
                    {"type": "ByteLevel"},
                    {
                        "type": "TemplateProcessing",
                        "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
                    },
                ],
            },
            [1, 2],
        ),
    ],
)
def test_texts_have_the_tokens_that_the_file_puts_around_them(
    tmp_path: Path, processor: object, ids: list[int]
) -> None:
    folder = folder_with(tmp_path, {**letter_tokenizer(), "post_processor": processor})
    assert tokenizer_of(folder).encode("a") == ids


@pytest.mark.parametrize(
    ("files", "ends"),
    [
        ({}, set()),
        ({"config": {"eos_token_id": 4}}, {4}),
        ({"config": {"eos_token_id": [4, 5]}}, {4, 5}),
        (
            {"config": {"eos_token_id": 4}, "generation_config": {"eos_token_id": [0, 6, 7]}},
            {0, 6, 7},
        ),
        ({"config": {"eos_token_id": 4_000}}, set()),
        ({"config": {"eos_token_id": [[4], {}, "5", True, 6.0, 7]}}, {7}),
        ({"config": {"eos_token_id": 4}, "tokenizer_config": {"eos_token": "<e>"}}, {0}),
    ],
)
def test_answers_end_with_what_the_files_say(
    tmp_path: Path, files: dict[str, Any], ends: set[int]
) -> None:
    assert tokenizer_of(folder_with(tmp_path, **files)).ends == ends


def test_a_model_may_have_rows_for_tokens_that_are_not_there(tmp_path: Path) -> None:
    said = letter_tokenizer()
    del said["model"]["vocab"]["Ġ"]
    tokenizer = tokenizer_of(folder_with(tmp_path, said))
    assert tokenizer.is_silent(28)
    assert tokenizer.decode([2, 28, 3]) == "ab"
    stream = tokenizer.stream()
    assert stream.push(2) + stream.finish() == "a"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"model": None}, "LLM10"),
        ({"model": {"vocab": {}}, "added_tokens": []}, "LLM11"),
        ({"normalizer": json.loads("[" * 900 + "]" * 900)}, "NAC6"),
        ({"model": {"vocab": {"a": -1}}}, "LLM11"),
        ({"model": {"vocab": {"a": 1 << 40}}}, "LLM11"),
        ({"model": {"vocab": {"a": "b"}}}, "LLM11"),
        ({"added_tokens": [{"id": None, "content": "x"}]}, "LLM11"),
        ({"post_processor": "ByteLevel"}, "LLM10"),
        ({"post_processor": {"type": "Sequence", "processors": 3}}, "LLM10"),
        ({"post_processor": {"type": "Sequence", "processors": ["ByteLevel"]}}, "LLM10"),
        ({"post_processor": {"type": "TemplateProcessing", "single": True}}, "LLM10"),
        ({"post_processor": {"type": "TemplateProcessing", "single": ["<s>"]}}, "LLM10"),
        (
            {"post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": 1}]}},
            "LLM10",
        ),
        (
            {"post_processor": {"type": "BertProcessing", "sep": ["<x>", 0], "cls": ["<s>", 1]}},
            "LLM10",
        ),
    ],
)
def test_what_is_no_tokenizer_is_refused(tmp_path: Path, change: dict[str, Any], code: str) -> None:
    folder = folder_with(tmp_path, {**letter_tokenizer(), **change})
    with pytest.raises(InputError, match=code):
        tokenizer_of(folder)


@pytest.mark.heavy("two plans are compiled")
def test_a_folder_speaks_by_plans_and_by_the_command_line(tmp_path: Path, capsys: Capsys) -> None:
    folder = folder_with(tmp_path / "model", tokenizer_config={**SETTINGS, "chat_template": ""})
    bundle = build(folder, "npm4k", context=24, chunk=4)
    said = bundle.generate("hello", max_tokens=6)
    bundle.save(tmp_path / "bundle")
    assert LlmBundle.load(tmp_path / "bundle").generate("hello", max_tokens=6) == said
    shown = invoke(capsys, "llm", "info", tmp_path / "bundle").out.splitlines()
    assert shown[0].startswith("language model for npm4k in f16: a cache of 24 tokens, prompts in")
    assert [line.split()[:3] for line in shown[3:5]] == [
        ["decode", "1", "24"],
        ["prefill", "4", "24"],
    ]
    told = json.loads(invoke(capsys, "llm", "info", "--format", "json", tmp_path / "bundle").out)
    assert [plan["tokens"] for plan in told["plans"]] == [1, 4]
    assert told["metadata"] == metadata_json(bundle.head.metadata)
    for model in (tmp_path / "bundle", folder):
        done = invoke(capsys, "llm", "run", model, "--prompt", "hello", "--max-tokens", "6")
        assert (done.status, done.out) == (0, f"{said}\n")


@pytest.mark.heavy("two plans are compiled")
def test_a_model_without_a_tokenizer_is_fed_tokens(tmp_path: Path, capsys: Capsys) -> None:
    folder = write_folder(tmp_path / "model", llama_config(SIZES), llama_arrays(SIZES))
    made = build(folder, "npm4k", context=16, chunk=4)
    made.save(tmp_path / "bundle")
    for bundle in (made, LlmBundle.load(tmp_path / "bundle")):
        assert bundle.runner().feed([1, 2, 3]).shape == (SIZES.vocabulary,)
        with pytest.raises(InputError, match=r"LLM10.*without a tokenizer"):
            bundle.generate("hello")
    refused = invoke(capsys, "llm", "run", tmp_path / "bundle", "--prompt", "a")
    assert refused.status == 1
    assert "LLM10" in refused.err


def test_a_folder_is_shown_as_a_file_of_it_would_be(tmp_path: Path, capsys: Capsys) -> None:
    folder = folder_with(tmp_path)
    shown = invoke(capsys, "llm", "info", folder, "--tensors").out
    model = read_checkpoint(folder)
    assert shown.startswith(f"checkpoint of transformers: {len(model.tensors)} tensors of ")
    assert all(name in shown for name in (*model.metadata, *model.tensors))
    told = json.loads(invoke(capsys, "llm", "info", folder, "--format", "json").out)
    assert told["elements"] == sum(model.tensor(name).size for name in model.tensors)


def test_both_verbs_estimate_a_folder(tmp_path: Path, capsys: Capsys) -> None:
    folder = folder_with(tmp_path)
    said = [
        invoke(capsys, *verb, folder, "--device", "npm4k")
        for verb in (("llm", "estimate"), ("estimate",))
    ]
    assert {(one.status, one.out) for one in said} == {(0, said[0].out)}
    assert "1 layers of 32" in said[0].out


def test_a_bundle_goes_into_no_folder_of_other_files(tmp_path: Path, capsys: Capsys) -> None:
    folder = folder_with(tmp_path)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    said = invoke(capsys, "llm", "build", folder, "--device", "npm4k", "-o", folder)
    assert (said.status, "LLM08" in said.err) == (1, True)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before

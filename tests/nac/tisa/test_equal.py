"""Programs give the ids of the library, for every kind of tokenizer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nacre.nac import tisa
from tests.effort import scaled
from tests.nac.tisa.compared import program
from tests.nac.tisa.corpus import CORPUS, strings
from tests.nac.tisa.made import BUILDERS, Tokenizer, tokenizer

EVERY = pytest.mark.parametrize("name", BUILDERS)


def require_same_ids(name: str, texts: list[str]) -> None:
    for text in texts:
        assert program(name).encode(text) == tokenizer(name).encode(text).ids, ascii(text)


@EVERY
def test_ids_are_those_of_the_library(name: str) -> None:
    require_same_ids(name, [*CORPUS, *strings(scaled(400), seed=7)])


@pytest.mark.full
@EVERY
def test_ids_of_ten_thousand_strings(name: str) -> None:
    require_same_ids(name, strings(10_000))


@EVERY
def test_without_special_tokens(name: str) -> None:
    for text in strings(40, seed=3):
        expected = tokenizer(name).encode(text, add_special_tokens=False).ids
        assert program(name).encode(text, add_special_tokens=False) == expected


@EVERY
def test_no_fragment_is_empty(name: str) -> None:
    for text in strings(40, seed=5):
        assert all(part for part, _ in program(name).fragments(text)), ascii(text)


DECODED = ("gpt2", "roberta", "llama3", "bert_uncased", "bert_cased", "t5", "xlm_r", "words")


@pytest.mark.parametrize("name", DECODED)
def test_texts_of_ids_are_those_of_the_library(name: str) -> None:
    made, library = program(name), tokenizer(name)
    for text in [*CORPUS, *strings(scaled(200), seed=11)]:
        ids = library.encode(text).ids
        assert made.decode(ids) == library.decode(ids), ascii(text)
        shown = made.decode(ids, skip_special_tokens=False)
        assert shown == library.decode(ids, skip_special_tokens=False), ascii(text)


@pytest.mark.sampled(8)
@EVERY
def test_the_same_bytes_from_an_object_a_file_and_a_text(name: str, tmp_path: Path) -> None:
    text = tokenizer(name).to_str(pretty=True)
    read = Tokenizer.from_str(text)  # its numbers are those that the library reads
    (tmp_path / "tokenizer.json").write_text(text, encoding="utf-8")
    made = tisa.compile_tokenizer(read)
    assert made == tisa.compile_tokenizer(text)
    assert made == tisa.compile_tokenizer(tmp_path)
    assert made == tisa.compile_tokenizer(str(tmp_path / "tokenizer.json"))


def test_a_tokenizer_of_transformers_is_taken() -> None:
    transformers = pytest.importorskip("transformers")
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer("gpt2"))
    made = tisa.load(tisa.compile_tokenizer(wrapped))
    for text in strings(20, seed=1):
        assert made.encode(text) == wrapped(text)["input_ids"]


def test_truncation_and_padding_are_options() -> None:
    made, library = program("bert_uncased"), Tokenizer.from_str(tokenizer("bert_uncased").to_str())
    for length in (2, 3, 7, 20):
        for side in ("left", "right"):
            library.enable_truncation(length, direction=side)
            library.enable_padding(direction=side, length=16, pad_id=0)
            for text in strings(30, seed=length):
                ids = made.encode(
                    text, max_length=length, truncate_from=side, pad_to=16, pad_id=0, pad_on=side
                )
                assert ids == library.encode(text).ids


def test_what_truncates_is_taken_when_that_is_asked_for() -> None:
    library = Tokenizer.from_str(tokenizer("bert_uncased").to_str())
    library.enable_truncation(8)
    made = tisa.load(tisa.compile_tokenizer(library, unlimited=True))
    assert made.encode("hello " * 20) == tokenizer("bert_uncased").encode("hello " * 20).ids
    assert json.loads(library.to_str())["truncation"]["max_length"] == 8

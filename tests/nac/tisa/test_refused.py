"""What TISA cannot say, and what is malformed: a code, the place, the reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nacre.base.diagnostics import InputError
from nacre.nac import tisa
from nacre.nac.tisa.characters import byte_alphabet

Json = dict[str, Any]


def small() -> Json:
    """A tokenizer written by hand, which compiles."""
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_token(4, "[X]")],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {"[UNK]": 0, "a": 1, "##b": 2, "c": 3},
        },
    }


def _token(index: int, content: str, **flags: bool) -> Json:
    off = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": index, "content": content, "special": True, **off, **flags}


def _bpe(**changes: object) -> Json:
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": "[UNK]",
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": {"[UNK]": 0, "a": 1, "b": 2, "ab": 3},
        "merges": [["a", "b"]],
    }
    return {**small(), "model": {**model, **changes}, "added_tokens": []}


def _unigram(**changes: object) -> Json:
    vocab = [["<pad>", 0.0], ["</s>", 0.0], ["<unk>", 0.0], ["a", -1.5], ["ab", -2.25]]
    model = {"type": "Unigram", "unk_id": 2, "vocab": vocab, "byte_fallback": False}
    return {**small(), "model": {**model, **changes}, "added_tokens": []}


def _with(**changes: object) -> Json:
    return {**small(), **changes}


def _model(**changes: object) -> Json:
    whole = small()
    whole["model"] = {**whole["model"], **changes}
    return whole


def _split(pattern: Json, behaviour: str = "Isolated", invert: bool = False) -> Json:
    split = {"type": "Split", "pattern": pattern, "behavior": behaviour, "invert": invert}
    return _with(pre_tokenizer=split)


def _template(single: list[Json]) -> Json:
    tokens = {"[X]": {"id": "[X]", "ids": [4], "tokens": ["[X]"]}}
    template = {"type": "TemplateProcessing", "single": single, "special_tokens": tokens}
    return _with(post_processor={**template, "pair": []})


_A: Json = {"Sequence": {"id": "A", "type_id": 0}}

NO_FORM: dict[str, tuple[Json, str, str]] = {
    "unknown normaliser": (_with(normalizer={"type": "Odd"}), "normalizer: ", "`Odd`"),
    "replace nothing": (
        _with(normalizer={"type": "Replace", "pattern": {"String": ""}, "content": " "}),
        "normalizer: ", "the empty text",
    ),
    "unknown pre-tokeniser": (
        _with(pre_tokenizer={"type": "Odd"}), "pre_tokenizer: ", "`Odd`",
    ),
    "pattern with a reference": (
        _split({"Regex": r"(a)\1"}), "pre_tokenizer: ", "not matched in linear time",
    ),
    "pattern of a script": (_split({"Regex": r"\p{Lydian}"}), "pre_tokenizer: ", "`Lydian`"),
    "pattern that may be empty": (_split({"Regex": "a*"}), "pre_tokenizer: ", "the empty text"),
    "dropout": (_bpe(dropout=0.1), "model: ", "at random"),
    "scores beyond 32 bits": (
        _unigram(vocab=[["<pad>", 0.0], ["</s>", 0.0], ["<unk>", 0.0], ["a", -1e39]]),
        "model.vocab[3]: ", "too large for `vocab.b`",
    ),
    "the same token twice": (
        _unigram(vocab=[["a", -1.0], ["a", -2.0], ["<unk>", 0.0]]), "model: ", "twice",
    ),
    "template of two": (
        _template([_A, {"Sequence": {"id": "B", "type_id": 0}}]),
        "post_processor.single: ", "a second one",
    ),
    "template without the text": (
        _template([{"SpecialToken": {"id": "[X]", "type_id": 0}}]), "post_processor: ", "0 times",
    ),
    "template that repeats the text": (_template([_A, _A]), "post_processor: ", "2 times"),
    "unknown post-processor": (
        _with(post_processor={"type": "Odd"}), "post_processor: ", "`Odd`",
    ),
    "a token that the normaliser drops": (
        _with(
            normalizer={"type": "Strip", "strip_left": True, "strip_right": True},
            added_tokens=[_token(4, " ", normalized=True)],
        ),
        "added_tokens[0]: ", "leaves nothing",
    ),
    "two tokens that are looked for as one": (
        _with(
            normalizer={"type": "Lowercase"},
            added_tokens=[_token(4, "TH", normalized=True), _token(5, "Th", normalized=True)],
        ),
        "added_tokens[1]: ", "by chance",
    ),
    "unknown model": (_model(type="Odd"), "model: ", "no model `Odd`"),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_FORM)
def test_what_tisa_cannot_say(name: str) -> None:
    whole, place, words = NO_FORM[name]
    with pytest.raises(InputError) as caught:
        tisa.compile_tokenizer(json.dumps(whole))
    (found,) = caught.value.diagnostics
    assert (found.code, found.location.file) == ("NAC69", "tokenizer.json")
    assert found.message.startswith(place), found.message
    assert words in found.message


MALFORMED: dict[str, tuple[Callable[[], object], str]] = {
    "no json": (lambda: "{", "this is no JSON"),
    "deep json": (lambda: '{"a":' + "[" * 100_000, "this is no JSON"),
    "a list": (lambda: json.dumps({"model": []}), "[] stands where an object"),
    "no model": (lambda: json.dumps({}), "an object with `model`"),
    "no type": (lambda: json.dumps(_with(normalizer={})), "an object with `type`"),
    "a number": (lambda: 7, "an object of the type int is no tokenizer"),
    "ids of text": (lambda: json.dumps(_model(vocab={"[UNK]": "0"})), "an integer"),
    "ids twice": (lambda: json.dumps(_model(vocab={"[UNK]": 0, "a": 0})), "the same id"),
    "ids too large": (lambda: json.dumps(_model(vocab={"[UNK]": 0, "a": 2**31})), "ids go from"),
    "half a character": (lambda: json.dumps(_model(vocab={"[UNK]": 0, "\ud800": 1})), "surrogate"),
    "merges of nothing": (lambda: json.dumps(_bpe(merges=["a c"])), "do not merge"),
    "merges of three": (lambda: json.dumps(_bpe(merges=[["a", "b", "a"]])), "not 3"),
    "merges without space": (lambda: json.dumps(_bpe(merges=["ab"])), "a space between"),
    "no unknown": (lambda: json.dumps(_model(unk_token="?")), "not in the vocabulary"),
    "id that is given out": (
        lambda: json.dumps(_with(added_tokens=[_token(9, "[X]")])), "the library gives it 4",
    ),
    "id of another": (
        lambda: json.dumps(_with(added_tokens=[_token(4, "a")])), "the library gives it 1",
    ),
    "negative id": (lambda: json.dumps(_with(added_tokens=[_token(-1, "[X]")])), "ids go from"),
    "long metaspace": (
        lambda: json.dumps(_with(pre_tokenizer={"type": "Metaspace", "replacement": "__"})),
        "not one character",
    ),
    "odd scheme": (
        lambda: json.dumps(_with(pre_tokenizer={"type": "Metaspace", "prepend_scheme": "odd"})),
        "none of always",
    ),
    "odd table": (
        lambda: json.dumps(
            _with(normalizer={"type": "Precompiled", "precompiled_charsmap": "AA=="})
        ),
        "is malformed",
    ),
    "no characters": (
        lambda: json.dumps(_with(pre_tokenizer={"type": "FixedLength", "length": 0})),
        "0 characters",
    ),
    "odd side": (
        lambda: json.dumps(_with(truncation={"max_length": 5, "direction": "Up"})), "neither Left",
    ),
    "pieces that overlap wholly": (
        lambda: json.dumps(_with(truncation={"max_length": 5, "stride": 5})), "overlap by 5",
    ),
    "a length without end": (
        lambda: json.dumps(_with(truncation={"max_length": 10**30})), "which is not between 0",
    ),
    "a negative length": (
        lambda: json.dumps(_with(truncation={"max_length": -1})), "cuts at -1",
    ),
    "padding to a length without end": (
        lambda: json.dumps(_with(padding={"strategy": {"Fixed": 10**12}})), "pads to 1,000,000,",
    ),
    "padding to multiples without end": (
        lambda: json.dumps(
            _with(padding={"strategy": "BatchLongest", "pad_to_multiple_of": 10**30})
        ),
        "pads to multiples of 1,000,",
    ),
    "padding with no id": (
        lambda: json.dumps(_with(padding={"strategy": "BatchLongest", "pad_id": -1})),
        "pads with the id -1",
    ),
    "odd strategy": (
        lambda: json.dumps(_with(truncation={"max_length": 5, "strategy": "Odd"})), "none of",
    ),
    "odd padding": (lambda: json.dumps(_with(padding={"strategy": "Odd"})), "the longest"),
    "an unknown id beyond": (lambda: json.dumps(_unigram(unk_id=9)), "`unk_id` is 9"),
    "odd behaviour": (lambda: json.dumps(_split({"String": "a"}, "Odd")), "no behaviour"),
    "a score that is missing": (lambda: json.dumps(_unigram(vocab=[["a"]])), "a text and a score"),
    "half a pair": (
        lambda: json.dumps(
            _with(post_processor={"type": "BertProcessing", "sep": ["x"], "cls": ["y", 1]})
        ),
        "a token and its id",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_malformed(name: str) -> None:
    make, words = MALFORMED[name]
    with pytest.raises(InputError) as caught:
        tisa.compile_tokenizer(make())
    assert {d.code for d in caught.value.diagnostics} == {"NAC68"}
    assert words in str(caught.value)


def test_a_folder_without_the_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"NAC68.*does not exist"):
        tisa.compile_tokenizer(tmp_path)


def test_everything_that_is_wrong_is_said_at_once() -> None:
    whole = _with(
        truncation={"max_length": 5, "direction": "Up"},
        normalizer={"type": "Odd"},
        pre_tokenizer={"type": "Odd"},
        post_processor={"type": "Odd"},
    )
    with pytest.raises(InputError) as caught:
        tisa.compile_tokenizer(json.dumps(whole))
    places = [d.message.partition(":")[0] for d in caught.value.diagnostics]
    assert places == ["truncation", "normalizer", "pre_tokenizer", "post_processor"]


LETTERS = {letter: id_ for id_, letter in enumerate(byte_alphabet())}
START = {
    "words": small(),
    "bpe": _bpe(),
    "bpe whose merges lead to every token": {
        **_bpe(ignore_merges=True, unk_token=None, vocab=LETTERS | {"ab": len(LETTERS)}),
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
    },
    "unigram": _unigram(),
}


@pytest.mark.parametrize("name", START)
def test_what_the_refusals_begin_from_compiles(name: str) -> None:
    made = tisa.load(tisa.compile_tokenizer(json.dumps(START[name])))
    assert made.encode("ab zz")

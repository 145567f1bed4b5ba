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
_BERT = {"type": "BertNormalizer", "lowercase": True, "strip_accents": None, "clean_text": True}
_CHINESE = {**_BERT, "handle_chinese_chars": True}

NO_FORM: dict[str, tuple[Json, str, str]] = {
    "precompiled": (
        _with(normalizer={"type": "Precompiled", "precompiled_charsmap": "AA=="}),
        "normalizer: ", "the longest of many texts",
    ),
    "unknown normaliser": (_with(normalizer={"type": "Odd"}), "normalizer: ", "`Odd`"),
    "prepend": (
        _with(normalizer={"type": "Prepend", "prepend": "_"}), "normalizer: ", "begins with '_'",
    ),
    "replace a pattern": (
        _with(normalizer={"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}),
        "normalizer: ", "literal texts, not the pattern ` {2,}`",
    ),
    "replace nothing": (
        _with(normalizer={"type": "Replace", "pattern": {"String": ""}, "content": " "}),
        "normalizer: ", "the empty text",
    ),
    "spaces around ideographs stay": (
        _with(normalizer=_CHINESE, pre_tokenizer=None), "pre_tokenizer: ", "inserts spaces",
    ),
    "spaces around ideographs change": (
        _with(normalizer={"type": "Sequence", "normalizers": [_CHINESE, {"type": "Lowercase"}]}),
        "normalizer.normalizers[0]: ", "comes behind it",
    ),
    "first metaspace": (
        _with(pre_tokenizer={
            "type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "split": True,
        }),
        "pre_tokenizer.prepend_scheme: ", "cannot tell the first one",
    ),
    "unknown pre-tokeniser": (
        _with(pre_tokenizer={"type": "UnicodeScripts"}), "pre_tokenizer: ", "`UnicodeScripts`",
    ),
    "pattern with a reference": (
        _split({"Regex": r"(a)\1"}), "pre_tokenizer: ", "not matched in linear time",
    ),
    "pattern of a script": (_split({"Regex": r"\p{Han}"}), "pre_tokenizer: ", "`Han`"),
    "pattern that may be empty": (_split({"Regex": "a*"}), "pre_tokenizer: ", "the empty text"),
    "merged text": (
        _split({"String": "ab"}, "MergedWithNext"), "pre_tokenizer: ", "several characters",
    ),
    "contiguous words": (
        _split({"Regex": "ab|a"}, "Contiguous"), "pre_tokenizer: ", "several lengths",
    ),
    "merged gaps": (
        _split({"Regex": "a"}, "MergedWithNext", True), "pre_tokenizer: ", "does not match",
    ),
    "word level": (
        _model(type="WordLevel"), "model: ", "no instruction for the model `WordLevel`",
    ),
    "long words": (
        _model(max_input_chars_per_word=50), "model: ", "more than 50 characters",
    ),
    "another unknown": (
        _model(unk_token="a"), "model: ", "becomes id 1; TISA takes `<unk>` or `[UNK]`",
    ),
    "dropout": (_bpe(dropout=0.1), "model: ", "at random"),
    "prefix": (_bpe(continuing_subword_prefix="##"), "model: ", "inside of words"),
    "prefix that merges leave out": (
        _bpe(
            continuing_subword_prefix="##",
            vocab={"[UNK]": 0, "a": 1, "##b": 2, "ab": 3},
            merges=[["a", "##b"]],
        ),
        "model: ", "`continuing_subword_prefix`",
    ),
    "bytes for unknown": (_bpe(byte_fallback=True), "model: ", "bytes in the place"),
    "one unknown for several": (_bpe(fuse_unk=True), "model: ", "become one id"),
    "unknown vanishes": (_bpe(unk_token=None), "model: ", "vanish"),
    "words before merges": (
        _bpe(ignore_merges=True, vocab={"[UNK]": 0, "a": 1, "b": 2, "ab": 3, "ba": 4}),
        "model: ", "to which no merges lead",
    ),
    "words before merges with a suffix": (
        _bpe(ignore_merges=True, end_of_word_suffix="</w>"), "model: ", "with a suffix",
    ),
    "scores beyond 32 bits": (
        _unigram(vocab=[["<pad>", 0.0], ["</s>", 0.0], ["<unk>", 0.0], ["a", -1e39]]),
        "model.vocab[3]: ", "too large for `vocab.b`",
    ),
    "scores above 0": (
        _unigram(vocab=[["<pad>", 1.0], ["</s>", 1.0], ["<unk>", 1.0]]), "model: ", "above 0",
    ),
    "the same token twice": (
        _unigram(vocab=[["a", -1.0], ["a", -2.0], ["<unk>", 0.0]]), "model: ", "twice",
    ),
    "no unknown": (_unigram(unk_id=None), "model: ", "no `unk_id`"),
    "another unknown of unigram": (_unigram(unk_id=1), "model: ", "becomes id 1"),
    "bytes for unknown of unigram": (_unigram(byte_fallback=True), "model: ", "bytes in the"),
    "truncation": (
        _with(truncation={"max_length": 5, "strategy": "LongestFirst", "stride": 0}),
        "truncation: ", "no instruction",
    ),
    "padding": (_with(padding={"strategy": "BatchLongest"}), "padding: ", "no instruction"),
    "template of two": (
        _template([_A, {"Sequence": {"id": "B", "type_id": 0}}]),
        "post_processor.single[1]: ", "a second one",
    ),
    "template without the text": (
        _template([{"SpecialToken": {"id": "[X]", "type_id": 0}}]), "post_processor: ", "0 times",
    ),
    "template that repeats the text": (_template([_A, _A]), "post_processor: ", "2 times"),
    "unknown post-processor": (
        _with(post_processor={"type": "Odd"}), "post_processor: ", "`Odd`",
    ),
    "token that is normalised away": (
        _with(added_tokens=[_token(4, "Foo", normalized=True)]),
        "added_tokens[0]: ", "'Foo' is looked for as 'foo'",
    ),
    "token with an ideograph": (
        _with(normalizer=_CHINESE, added_tokens=[_token(4, "\u4e2d", normalized=True)]),
        "added_tokens[0]: ", "around ideographs",
    ),
    "white space that is a token": (
        _with(added_tokens=[_token(4, "[X]", lstrip=True), _token(5, " ")]),
        "added_tokens[0]: ", "is a part of",
    ),
    "white space for one of two": (
        _with(added_tokens=[_token(4, "[X]", lstrip=True), _token(5, "[X]]")]),
        "added_tokens[0]: ", "begins with it",
    ),
    "words that overlap": (
        _with(added_tokens=[_token(4, "foo", single_word=True), _token(5, "oof")]),
        "added_tokens[0]: ", "overlaps 'oof'",
    ),
    "a word that overlaps itself": (
        _with(added_tokens=[_token(4, "aba", single_word=True)]),
        "added_tokens[0]: ", "overlaps itself",
    ),
    "a token and the same with space": (
        _model(vocab={"[UNK]": 0, "a": 1, " [X]": 2})
        | {"added_tokens": [_token(3, "[X]", lstrip=True)]},
        "added_tokens[0]: ", "is a token as well",
    ),
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
        truncation={"max_length": 5},
        normalizer={"type": "Precompiled"},
        pre_tokenizer={"type": "UnicodeScripts"},
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

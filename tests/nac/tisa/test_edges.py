"""Tokenizers written by hand, at the edges, and long texts: as the library, and in time."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import pytest

from nacre.nac import tisa
from nacre.nac.tisa.bundle import split
from nacre.nac.tisa.scores import read_decimal
from tests.nac.tisa.compared import program
from tests.nac.tisa.made import Tokenizer, tokenizer

Json = dict[str, Any]


def _whole(model: Json, **parts: object) -> Json:
    names = ("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder")
    return {"version": "1.0", "added_tokens": [], **dict.fromkeys(names), "model": model, **parts}


def _bpe(tokens: str, merges: list[str], **changes: object) -> Json:
    vocabulary = {token: index for index, token in enumerate(tokens.split())}
    return {
        "type": "BPE", "unk_token": "<unk>", "vocab": vocabulary, "merges": merges, **changes,
    }  # fmt: skip


def _unigram(**scores: float) -> Json:
    vocabulary = [["<s>", 0.0], ["</s>", 0.0], ["<unk>", 0.0], *map(list, scores.items())]
    return {"type": "Unigram", "unk_id": 2, "vocab": vocabulary, "byte_fallback": False}


def _added(index: int, content: str, **flags: bool) -> Json:
    off = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    return {"id": index, "content": content, **off, **flags}


_WORDS: Json = {
    "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
    "max_input_chars_per_word": 100,
    "vocab": {
        "[UNK]": 0, "a": 1, "##a": 2, "aa": 3, "##": 4, "##aaa": 5, "foo": 6, "f": 7, "##o": 8,
    },
}  # fmt: skip
_SPLIT = {"type": "WhitespaceSplit"}

CASES: dict[str, tuple[Json, list[str]]] = {
    "runs of one pair": (
        _whole(_bpe("<unk> a aa aaaa", ["a a", "aa aa"])), ["a" * size for size in range(9)],
    ),
    "a later merge of lower rank": (
        _whole(_bpe("<unk> a b c ab bc abc", ["ab c", "b c", "a b", "a bc"])),
        ["abc", "abcabc", "aabcc", "bcab", "zabz"],
    ),
    "two ways to one token": (
        _whole(_bpe("<unk> a b c ab bc abc bb cab", ["a bc", "a b", "b c", "ab c", "c ab"])),
        ["abc", "abcab", "bcabc", "cabc", "ababcabc"],
    ),
    "a merge that is there twice": (
        _whole(_bpe("<unk> a b c ab bc", ["a b", "b c", "a b"])), ["abc", "abcabc", "bcab"],
    ),
    "merges with unknown": (
        _whole(_bpe("<unk> a <unk>a", ["<unk> a"])), ["za", "zza", "aza", "zz"],
    ),
    "no merges": (_whole(_bpe("<unk> a b", [])), ["", "abc", "   "]),
    "pieces of the marker": (
        _whole(_WORDS, pre_tokenizer=_SPLIT),
        ["a", "aa", "aaa", "aaaa", "aaaaa", "##a", "##", "a##", "a" * 100, "a" * 101, "aab a"],
    ),
    "words of many characters": (
        _whole(_WORDS, pre_tokenizer=_SPLIT), ["\U0001f600" * 100, "\U0001f600" * 101],
    ),
    "equal sums": (
        _whole(_unigram(a=-1.0, b=-1.0, ab=-2.0, ba=-2.0, aba=-3.0)), ["ab", "aba", "baba", "abab"],
    ),
    "unknown beside known": (
        _whole(_unigram(a=-1.0, xy=-0.5)), ["x", "xa", "xxa", "axyx", "<unk>x", "zz<unk>a", ""],
    ),
    "longest added token": (
        _whole(_WORDS, pre_tokenizer=_SPLIT, added_tokens=[_added(9, "<a"), _added(10, "<a>b")]),
        ["<a>b", "<a>", "<a>c<a>b<a", "<<a>b"],
    ),
    "white space of added tokens": (
        _whole(
            _WORDS, pre_tokenizer=_SPLIT,
            added_tokens=[_added(9, "<l>", lstrip=True), _added(10, "<r>", rstrip=True)],
        ),
        [" <l> <r> ", "a<r>  <l>a", "<r>\u3000\n<l> ", "<l><l>", "<r> <r> a"],
    ),
    "whole words": (
        _whole(_WORDS, pre_tokenizer=_SPLIT, added_tokens=[_added(6, "foo", single_word=True)]),
        ["foo", "foo foo", "afoo", "foo_", "-foo-", "foo\u200d", "\u24b6foo", "foo\u0301"],
    ),
    "normalised added tokens": (
        _whole(
            _WORDS, pre_tokenizer=_SPLIT, normalizer={"type": "Lowercase"},
            added_tokens=[_added(9, "xyz", normalized=True), _added(10, "QQ")],
        ),
        ["XYZ", "aXyZa", "QQ", "qq", "QQxyz QQ"],
    ),
    "normalised ideographs that are added tokens": (
        _whole(
            _WORDS, pre_tokenizer={"type": "BertPreTokenizer"},
            normalizer={"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                        "strip_accents": None, "lowercase": True},
            added_tokens=[
                _added(9, "\u4e2d", normalized=True), _added(10, "foo a", normalized=True),
            ],
        ),
        ["\u4e2d", "a\u4e2da", "foo a", "a\u4e2d\u4e2d foo a", "\u6587\u4e2d"],
    ),
    "bytes behind the end": (
        _whole(
            _bpe("<unk> a @b <0x40> <0x7A> <0x2F>", [], continuing_subword_prefix="@",
                 end_of_word_suffix="/", byte_fallback=True),
            normalizer={"type": "Replace", "pattern": {"String": "x"}, "content": ""},
        ),
        ["az", "axz", "xxz", "zzz", "ab", "xabxz"],
    ),
    "added tokens of the model": (
        _whole(_WORDS, pre_tokenizer=_SPLIT, added_tokens=[_added(6, "foo"), _added(9, "[N]")]),
        ["foo", "afooa", "[N]foo", "FOO"],
    ),
    "everything is normalised away": (
        _whole(
            _WORDS, normalizer={"type": "Nmt"},
            pre_tokenizer={"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True,
                           "use_regex": True},
        ),
        ["", "\x01", "\x01\x02 ", " ", "\x01a"],
    ),
    "strip": (
        _whole(_WORDS, normalizer={"type": "Strip", "strip_left": True, "strip_right": True}),
        ["", " ", "  a  ", "a", " a a ", "\u3000a\u2028", "\x1ca"],
    ),
    "metaspace over metaspace": (
        _whole(
            _unigram(**{"\u2581": -1.0, "\u2581a": -1.5, "a": -2.0}),
            pre_tokenizer={"type": "Metaspace", "replacement": "\u2581", "split": True,
                           "prepend_scheme": "always"},
        ),
        ["", " ", "a", " a", "\u2581a", "\u2581\u2581a", "a  a", "a "],
    ),
    "a sequence of post-processors": (
        _whole(
            _WORDS,
            post_processor={"type": "Sequence", "processors": [
                {"type": "BertProcessing", "sep": ["a", 1], "cls": ["f", 7]},
                {"type": "TemplateProcessing", "pair": [],
                 "single": [{"SpecialToken": {"id": "x", "type_id": 0}},
                            {"Sequence": {"id": "A", "type_id": 0}}],
                 "special_tokens": {"x": {"id": "x", "ids": [3, 6], "tokens": ["aa", "foo"]}}},
            ]},
        ),
        ["a", ""],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_edges(name: str) -> None:
    whole, texts = CASES[name]
    text = json.dumps(whole)
    library, made = Tokenizer.from_str(text), tisa.load(tisa.compile_tokenizer(text))
    for each in texts:
        found, expected = made.encode_whole(each), library.encode(each)
        assert made.encode(each) == found.ids == expected.ids, ascii(each)
        assert found.offsets == expected.offsets, ascii(each)
        assert found.tokens == expected.tokens, ascii(each)
        assert made.decode(found.ids) == library.decode(expected.ids), ascii(each)


def test_decimals_are_read_as_the_library_reads_them() -> None:
    texts = ["-0.1", "-1e-7", "-12.345678901234567", "-2.3217613431825157e-07", "3.14159265358979"]
    vocabulary = ", ".join(f'["t{i}", {text}]' for i, text in enumerate(texts))
    model = f'{{"type": "Unigram", "unk_id": 0, "vocab": [{vocabulary}], "byte_fallback": false}}'
    raw = json.dumps(_whole({})).replace('"model": {}', f'"model": {model}')
    kept = json.loads(Tokenizer.from_str(raw).to_str())["model"]["vocab"]
    assert [score for _, score in kept] == [read_decimal(text) for text in texts]


LONG = {
    "one letter": "a", "spaces": " ", "lines": "\n", "pairs": "ab", "words": "the ",
    "accents": "\u00e9",
    "marks": "\u0301\u0316", "quotes": "'", "digits": "1", "unknown": "\U0001f9ff", "angles": "<",
    "half tokens": " <mask", "carriage": " \r\n",
}  # fmt: skip
LONG_FOR = ("gpt2", "roberta", "llama3", "bert_uncased", "t5", "clip", "letters")


def _long(name: str, unit: str, length: int) -> float:
    made = program(name)
    text = unit * (length // len(unit))
    start = time.process_time()
    ids = made.encode(text)
    seconds = time.process_time() - start
    assert ids == tokenizer(name).encode(text).ids
    return seconds


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", LONG_FOR)
@pytest.mark.parametrize("unit", LONG)
def test_long_texts(name: str, unit: str) -> None:
    assert _long(name, LONG[unit], 20_000) < 5


@pytest.mark.full
@pytest.mark.parametrize("name", LONG_FOR)
@pytest.mark.parametrize("unit", LONG)
def test_very_long_texts(name: str, unit: str) -> None:
    """A million characters: under a minute each, here at most some ten seconds."""
    assert _long(name, LONG[unit], 1_000_000) < 60


def test_deep_merges() -> None:
    """Every merge doubles the token, thirteen times."""
    tokens = ["a" * 2**power for power in range(14)]
    model = _bpe(" ".join(["<unk>", *tokens]), [f"{token} {token}" for token in tokens[:-1]])
    text = json.dumps(_whole(model))
    library, made = Tokenizer.from_str(text), tisa.load(tisa.compile_tokenizer(text))
    for length in (1, 2**13 - 1, 2**13, 3 * 2**12 + 5, 2**15 + 1):
        assert made.encode("a" * length) == library.encode("a" * length).ids


@pytest.mark.parametrize("given", [None, b"abc", 7, ["a"]])
def test_what_is_no_text_is_told(given: Any) -> None:  # noqa: ANN401 - wrong on purpose
    told = f"a text is expected, found {type(given).__name__}"
    for taken in (program("gpt2").encode, program("gpt2").fragments):
        with pytest.raises(TypeError, match=told):
            taken(given)


def test_scores_of_64_bits_decide() -> None:
    """Two ways to cut `ab`, which rounding to 32 bits would make equal, or turn around."""
    one = -1.0000000001
    for whole, expected in ((2 * one - 1e-9, [1, 1]), (2 * one + 1e-9, [2])):
        vocab = [("<unk>", 0.0), ("a", one), ("aa", whole)]
        text = json.dumps(_whole({"type": "Unigram", "unk_id": 0, "vocab": vocab}))
        raw = tisa.compile_tokenizer(text)
        assert Tokenizer.from_str(text).encode("aa").ids == expected
        assert tisa.load(raw).encode("aa") == expected
        assert "nacre.scores.b" in split(raw).resources


def test_scores_of_32_bits_take_no_more() -> None:
    vocab = [("<unk>", 0.0), ("a", -1.5), ("aa", float(np.float32(-2.7)))]
    text = json.dumps(_whole({"type": "Unigram", "unk_id": 0, "vocab": vocab}))
    assert sorted(split(tisa.compile_tokenizer(text)).resources) == ["vidx.b", "vocab.b"]

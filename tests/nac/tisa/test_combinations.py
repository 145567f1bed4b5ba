"""Any normaliser with any pre-tokeniser, model and post-processor: equal, or refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.nac import tisa
from tests.nac.tisa.corpus import strings
from tests.nac.tisa.made import LLAMA3, Tokenizer, rounded, tokenizer

Json = dict[str, Any]


def _normalizers() -> st.SearchStrategy[Json]:
    plain = ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt")
    flags = st.booleans()
    single: st.SearchStrategy[Json] = st.one_of(
        st.sampled_from([{"type": name} for name in plain]),
        st.builds(
            lambda a, b, c, d: {
                "type": "BertNormalizer", "clean_text": a, "handle_chinese_chars": b,
                "strip_accents": c, "lowercase": d,
            },
            flags, flags, st.sampled_from([None, True, False]), flags,
        ),
        st.builds(
            lambda a, b: {"type": "Replace", "pattern": {"String": a}, "content": b},
            st.sampled_from(["a", " ", "the", "\u00e9", "''", "\u2581"]),
            st.sampled_from(["", "b", " ", "aa", "\u2581"]),
        ),
        st.just({"type": "Replace", "pattern": {"Regex": r"\."}, "content": "!"}),
        st.just({"type": "Prepend", "prepend": "\u2581"}),
        st.builds(lambda a, b: {"type": "Strip", "strip_left": a, "strip_right": b}, flags, flags),
    )  # fmt: skip
    several = st.lists(single, max_size=3)
    return single | several.map(lambda listed: {"type": "Sequence", "normalizers": listed})


BEHAVIOURS = ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")
PATTERNS: tuple[Json, ...] = (
    {"String": " "}, {"String": "e"}, {"String": "th"}, {"Regex": LLAMA3}, {"Regex": r"\w+"},
    {"Regex": r"\W"}, {"Regex": r"[\s,]+"}, {"Regex": r"\d{1,3}(?=\d)"}, {"Regex": "a|ab|abc"},
    {"Regex": r"(?:ab)+?b"}, {"Regex": "[^a-z]"}, {"Regex": r"\p{Lu}?\p{Ll}+"},
)  # fmt: skip


def _pre_tokenizers() -> st.SearchStrategy[Json]:
    flags = st.booleans()
    single: st.SearchStrategy[Json] = st.one_of(
        st.sampled_from(
            [{"type": name} for name in ("Whitespace", "WhitespaceSplit", "BertPreTokenizer")]
        ),
        st.builds(
            lambda a, b: {
                "type": "ByteLevel", "add_prefix_space": a, "use_regex": b, "trim_offsets": True,
            },
            flags, flags,
        ),
        st.builds(
            lambda a, b: {
                "type": "Metaspace", "replacement": "\u2581", "prepend_scheme": a, "split": b,
            },
            st.sampled_from(["always", "never", "first"]), flags,
        ),
        st.builds(lambda a: {"type": "Punctuation", "behavior": a}, st.sampled_from(BEHAVIOURS)),
        st.builds(lambda a: {"type": "Digits", "individual_digits": a}, flags),
        st.just({"type": "CharDelimiterSplit", "delimiter": "e"}),
        st.builds(
            lambda a, b, c: {"type": "Split", "pattern": a, "behavior": b, "invert": c},
            st.sampled_from(PATTERNS), st.sampled_from(BEHAVIOURS), flags,
        ),
    )  # fmt: skip
    several = st.lists(single, max_size=3)
    return single | several.map(lambda listed: {"type": "Sequence", "pretokenizers": listed})


ADDED = st.lists(
    st.builds(
        lambda content, a, b, c, d, e: {
            "content": content, "single_word": a, "lstrip": b, "rstrip": c, "normalized": d,
            "special": e,
        },
        st.sampled_from(["<mask>", "the", "[X]", "a b", "\u4e2d", "The", " x", "z\u00e9"]),
        *[st.booleans()] * 5,
    ),
    max_size=3,
    unique_by=lambda token: token["content"],
)  # fmt: skip
POST: tuple[Json | None, ...] = (
    None,
    {"type": "BertProcessing", "sep": ["b", 5], "cls": ["a", 3]},
    {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
)


_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}


@cache
def _base(name: str) -> Json:
    made: Json = json.loads(tokenizer(name).to_str())
    made["added_tokens"], made["post_processor"] = [], None
    return made


def _added(whole: Json, listed: list[Json]) -> None:
    vocabulary = whole["model"]["vocab"]
    known = {pair[0] for pair in vocabulary} if isinstance(vocabulary, list) else set(vocabulary)
    fresh = len(vocabulary)
    for token in listed:
        if token["content"] in known:
            continue
        whole["added_tokens"].append({"id": fresh, **token})
        fresh += 1


def _compared(whole: Json, texts: list[str]) -> str:
    text = json.dumps(whole)
    library = Tokenizer.from_str(text)
    if whole["model"]["type"] == "Unigram":
        library = rounded(library)
        text = library.to_str()
        library = Tokenizer.from_str(text)
    try:
        made = tisa.load(tisa.compile_tokenizer(text))
    except InputError as refused:
        codes = {d.code for d in refused.diagnostics}
    else:
        for each in texts:
            assert made.encode(each) == library.encode(each).ids, ascii(each)
        return "equal"
    assert codes == {"NAC69"}
    return "refused"


@pytest.mark.full
@pytest.mark.parametrize("name", ["gpt2", "letters", "bert_uncased", "t5"])
@given(data=st.data())
def test_any_combination(name: str, data: st.DataObject) -> None:
    draw: Callable[[st.SearchStrategy[Any]], Any] = data.draw
    whole = json.loads(json.dumps(_base(name)))
    whole["normalizer"] = draw(st.none() | _normalizers())
    whole["pre_tokenizer"] = draw(st.none() | _pre_tokenizers())
    whole["post_processor"] = draw(st.sampled_from(POST))
    _added(whole, draw(ADDED))
    texts = strings(12, seed=draw(st.integers(0, 1000)))
    event(_compared(whole, [*texts, draw(st.text(max_size=20))]))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("pattern", [p["Regex"] for p in PATTERNS if "Regex" in p])
@pytest.mark.parametrize("behaviour", BEHAVIOURS)
@pytest.mark.parametrize("invert", [False, True])
def test_every_pattern_with_every_behaviour(pattern: str, behaviour: str, invert: bool) -> None:
    whole = json.loads(json.dumps(_base("gpt2")))
    split = {
        "type": "Split",
        "pattern": {"Regex": pattern},
        "behavior": behaviour,
        "invert": invert,
    }
    level = _LEVEL
    whole["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, level]}
    outcome = _compared(whole, [*strings(25, seed=4), "abcab b abbab 1234567 a,b"])
    if behaviour in ("Removed", "Isolated"):
        assert outcome == "equal"

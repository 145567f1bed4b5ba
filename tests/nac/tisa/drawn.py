"""Tokenizers drawn at random: every part that `tokenizer.json` has, in any combination."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

from tests.nac.tisa.charsmaps import precompiled
from tests.nac.tisa.drawn_models import drawn_decoder, drawn_model
from tests.nac.tisa.made import LLAMA3, tokenizer
from tests.nac.tisa.patterns.drawn_patterns import drawn_class

Json = dict[str, Any]
BEHAVIOURS = ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")
PATTERNS: tuple[Json, ...] = (
    {"String": " "}, {"String": "e"}, {"String": "th"}, {"Regex": LLAMA3}, {"Regex": r"\w+"},
    {"Regex": r"\W"}, {"Regex": r"[\s,]+"}, {"Regex": r"\d{1,3}(?=\d)"}, {"Regex": "a|ab|abc"},
    {"Regex": r"(?:ab)+?b"}, {"Regex": "[^a-z]"}, {"Regex": r"\p{Lu}?\p{Ll}+"},
)  # fmt: skip
# Parts that vanish, grow, shrink and stay; a key that begins with another one is never found.
TABLE = {
    "a": "", "\ufb01": "fi", "e\u0301": "X", "th": "T", "\u00e9": "e", "\n": " ", "\r": " ",
    "q": "qu\u0301", "ab": "never",
}  # fmt: skip
_PLAIN = ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "ByteLevel")
BASES = ("gpt2", "letters", "bert_uncased", "t5", "clip", "unigram")


def _flip(draw: Random) -> bool:
    return draw.random() < 0.5


def _class_pattern(draw: Random) -> Json:
    """A class of any kind, once or in a row: no engine tries long to match it."""
    return {"Regex": drawn_class(draw) + draw.choice(("", "", "+", "{1,2}"))}


def _normalizer(draw: Random) -> Json:
    kind = draw.randrange(11)
    if kind == 10:
        content = draw.choice(("", "!", "xy"))
        return {"type": "Replace", "pattern": _class_pattern(draw), "content": content}
    if kind == 0:
        return {
            "type": "BertNormalizer", "clean_text": _flip(draw), "lowercase": _flip(draw),
            "handle_chinese_chars": _flip(draw), "strip_accents": draw.choice((None, True, False)),
        }  # fmt: skip
    if kind == 1:
        wanted = draw.choice(("a", " ", "the", "\u00e9", "''", "\u2581"))
        content = draw.choice(("", "b", " ", "aa", "\u2581"))
        return {"type": "Replace", "pattern": {"String": wanted}, "content": content}
    if kind == 2:
        patterns = (r"\.", " {2,}", r"\s+", "[aeiou]+", "(?<=a)b", r"\p{Lu}")
        pattern = {"Regex": draw.choice(patterns)}
        return {
            "type": "Replace",
            "pattern": pattern,
            "content": draw.choice(("", "!", " ", "xy")),
        }
    if kind == 3:
        return {"type": "Prepend", "prepend": draw.choice(("\u2581", "ab"))}
    if kind == 4:
        return {"type": "Strip", "strip_left": _flip(draw), "strip_right": _flip(draw)}
    if kind == 5:
        return precompiled(TABLE)
    return {"type": draw.choice(_PLAIN)}


def _pre_tokenizer(draw: Random) -> Json:
    plain = ("Whitespace", "WhitespaceSplit", "BertPreTokenizer", "UnicodeScripts")
    match draw.randrange(9):
        case 0:
            return {
                "type": "ByteLevel", "add_prefix_space": _flip(draw), "use_regex": _flip(draw),
                "trim_offsets": True,
            }  # fmt: skip
        case 1 | 2:
            scheme = draw.choice(("always", "never", "first"))
            mark: Json = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme}
            return {**mark, "split": _flip(draw)}
        case 3:
            return {"type": "Punctuation", "behavior": draw.choice(BEHAVIOURS)}
        case 4:
            return {"type": "Digits", "individual_digits": _flip(draw)}
        case 5:
            return {"type": "CharDelimiterSplit", "delimiter": "e"}
        case 6:
            return {"type": "FixedLength", "length": draw.choice((1, 3, 5))}
        case 7:
            pattern = draw.choice((*PATTERNS, _class_pattern(draw)))
            split: Json = {"type": "Split", "pattern": pattern}
            return {**split, "behavior": draw.choice(BEHAVIOURS), "invert": _flip(draw)}
        case _:
            return {"type": draw.choice(plain)}


def _one_or_several(draw: Random, one: Callable[[Random], Json], member: str) -> Json | None:
    kind = draw.random()
    if kind < 0.2:
        return None
    if kind < 0.6:
        return one(draw)
    return {"type": "Sequence", member: [one(draw) for _ in range(draw.randrange(4))]}


def _post_processor(draw: Random) -> Json | None:
    trim = {"add_prefix_space": _flip(draw), "trim_offsets": draw.random() < 0.7}
    level: Json = {"type": "ByteLevel", **trim, "use_regex": True}
    template: Json = {
        "type": "TemplateProcessing",
        "single": [_special("[X]", 0), _text("A", draw.choice((0, 1)))],
        "pair": [_text("A", 0), _special("[X]", 1), _text("B", 2), _special("[Y]", 0)],
        "special_tokens": {
            "[X]": {"id": "[X]", "ids": [4], "tokens": ["[X]"]},
            "[Y]": {"id": "[Y]", "ids": [5, 6], "tokens": ["p", "q"]},
        },
    }
    ends = {"sep": ["b", 5], "cls": ["a", 3]}
    bert: Json = {"type": "BertProcessing", **ends}
    roberta: Json = {"type": "RobertaProcessing", **ends, **trim}
    several: tuple[list[Json], ...] = (
        [level, template],
        [template, level],
        [level, bert],
        [roberta],
        [level, level],
        [],
    )
    sequence = {"type": "Sequence", "processors": draw.choice(several)}
    return draw.choice((None, level, template, sequence, bert, roberta))


def _special(name: str, type_id: int) -> Json:
    return {"SpecialToken": {"id": name, "type_id": type_id}}


def _text(name: str, type_id: int) -> Json:
    return {"Sequence": {"id": name, "type_id": type_id}}


def _change_model(draw: Random, model: Json) -> Json:
    """The same vocabulary with other options."""
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    if model["type"] == "BPE":
        model["fuse_unk"], model["ignore_merges"] = _flip(draw), draw.random() < 0.3
        model["byte_fallback"] = draw.random() < 0.4 and not model["end_of_word_suffix"]
        if draw.random() < 0.3:
            model["unk_token"] = None
        if model["byte_fallback"] and draw.random() < 0.8:
            for token in bytes_:
                model["vocab"].setdefault(token, len(model["vocab"]))
    elif model["type"] == "WordPiece" and draw.random() < 0.3:
        return {"type": "WordLevel", "vocab": model["vocab"], "unk_token": "[UNK]"}
    elif model["type"] == "WordPiece":
        model["max_input_chars_per_word"] = draw.choice((5, 100))
    elif draw.random() < 0.3:
        model["byte_fallback"] = True
        known = {token for token, _ in model["vocab"]}
        model["vocab"] += [[token, 0.0] for token in bytes_ if token not in known]
    return model


def _add_tokens(draw: Random, whole: Json) -> None:
    vocabulary = whole["model"]["vocab"]
    known = {pair[0] for pair in vocabulary} if isinstance(vocabulary, list) else set(vocabulary)
    names = ("<mask>", "the", "[X]", "a b", "\u4e2d", "The", " x", "z\u00e9", "th", "<m")
    fresh = len(vocabulary)
    for name in draw.sample(names, draw.randrange(5)):
        if name in known:
            continue  # it would have the id that it has
        flags = {key: draw.random() < 0.3 for key in ("single_word", "lstrip", "rstrip")}
        more = {"normalized": _flip(draw), "special": _flip(draw)}
        whole["added_tokens"].append({"id": fresh, "content": name, **flags, **more})
        fresh += 1


def _lengths(draw: Random) -> Json:
    cut: Json = {"max_length": draw.choice((6, 7, 12)), "stride": draw.choice((0, 2))}
    if _flip(draw):
        cut = {"max_length": draw.randrange(9), "stride": 0}
        cut["stride"] = draw.randrange(max(cut["max_length"], 1))
    cut |= {"strategy": draw.choice(("LongestFirst", "OnlyFirst", "OnlySecond"))}
    padding: Json = {"strategy": draw.choice(("BatchLongest", {"Fixed": 20}))}
    padding |= {"pad_to_multiple_of": draw.choice((None, 8)), "pad_id": 1, "pad_type_id": 3}
    side = {"direction": draw.choice(("Left", "Right"))}
    return {
        "truncation": {**cut, **side} if draw.random() < 0.15 else None,
        "padding": {**padding, "pad_token": "P", **side} if draw.random() < 0.15 else None,
    }


def small_tokenizer(draw: Random) -> Json:
    """A `tokenizer.json` with a vocabulary of few letters, and any decoder."""
    whole: Json = {"version": "1.0", "added_tokens": []}
    whole["normalizer"] = _one_or_several(draw, _normalizer, "normalizers")
    whole["pre_tokenizer"] = _one_or_several(draw, _pre_tokenizer, "pretokenizers")
    whole["post_processor"] = _post_processor(draw)
    whole["model"] = drawn_model(draw)
    whole["decoder"] = drawn_decoder(draw)
    _add_tokens(draw, whole)
    return whole | _lengths(draw)


@cache
def _base(name: str) -> str:
    return str(tokenizer(name).to_str())


def drawn_tokenizer(draw: Random) -> Json:
    """A `tokenizer.json`."""
    whole: Json = json.loads(_base(draw.choice(BASES)))
    whole["added_tokens"] = []
    whole["normalizer"] = _one_or_several(draw, _normalizer, "normalizers")
    whole["pre_tokenizer"] = _one_or_several(draw, _pre_tokenizer, "pretokenizers")
    whole["post_processor"] = _post_processor(draw)
    whole["model"] = _change_model(draw, whole["model"])
    _add_tokens(draw, whole)
    return whole | _lengths(draw)

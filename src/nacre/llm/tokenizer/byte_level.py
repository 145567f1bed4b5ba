"""Byte-level BPE (`gpt2`) as a program: by way of the `tokenizer.json` that it would be."""

from __future__ import annotations

import json

from nacre.base.excerpt import backquote
from nacre.llm.model.problems import refusal
from nacre.llm.rules.tokenizer import LLM10, LLM11
from nacre.llm.tokenizer.pre_tokenizers import PRE_TOKENIZERS, PreTokenizer
from nacre.llm.tokenizer.vocabulary import TokenType, Vocabulary
from nacre.nac.tisa import TisaProgram, compile_tokenizer, load
from nacre.nac.tisa.characters import byte_alphabet


def byte_level_program(vocabulary: Vocabulary) -> TisaProgram:
    """The program; InputError for what is not known, or does not fit."""
    cut = PRE_TOKENIZERS.get(vocabulary.pattern)
    if cut is None:
        shown = backquote(vocabulary.pattern) if vocabulary.pattern else "not said"
        message = f"how texts are cut is {shown} (`tokenizer.ggml.pre`), which has no name here"
        raise refusal(LLM10, vocabulary.file, message, f"known are {', '.join(PRE_TOKENIZERS)}")
    return load(compile_tokenizer(json.dumps(_document(vocabulary, cut))))


def _document(vocabulary: Vocabulary, cut: PreTokenizer) -> dict[str, object]:
    ids = {token: at for at, token in enumerate(vocabulary.tokens)}
    added = vocabulary.ids_of_type(TokenType.USER)
    byte_level = {"type": "ByteLevel", "add_prefix_space": vocabulary.adds_space}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added_token(text, at) for text, at in added.items()],
        "normalizer": None,
        "pre_tokenizer": _pre_tokenizer(cut, vocabulary.adds_space),
        "post_processor": None,
        "decoder": {**byte_level, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": _unknown(vocabulary, ids),
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": cut.takes_words,
            "vocab": ids,
            "merges": _merges(vocabulary, ids),
        },
    }


def _unknown(vocabulary: Vocabulary, ids: dict[str, int]) -> str | None:
    """What stands for a byte that is no token: needed only where one is not."""
    if all(letter in ids for letter in byte_alphabet()):
        return None
    at = vocabulary.unknown
    if at is None:
        at = vocabulary.end if vocabulary.end is not None else 0
    return vocabulary.tokens[at]


def _merges(vocabulary: Vocabulary, ids: dict[str, int]) -> list[list[str]]:
    """Pairs; what they make must be a token, as each of them."""
    pairs = []
    for merge in vocabulary.merges:
        first, _, second = merge.partition(" ")
        if first not in ids or second not in ids or first + second not in ids:
            message = f"the merge {backquote(merge)} is none of two tokens that make a third"
            raise refusal(LLM11, vocabulary.file, message)
        pairs.append([first, second])
    return pairs


def _pre_tokenizer(cut: PreTokenizer, adds_space: bool) -> dict[str, object]:
    is_own = cut.pattern is None
    steps: list[dict[str, object]] = []
    if cut.has_single_digits:
        steps.append({"type": "Digits", "individual_digits": True})
    if cut.pattern is not None:
        split = {"type": "Split", "pattern": {"Regex": cut.pattern}}
        steps.append({**split, "behavior": "Isolated", "invert": False})
    last = {"type": "ByteLevel", "add_prefix_space": adds_space, "trim_offsets": True}
    steps.append({**last, "use_regex": is_own})
    return {"type": "Sequence", "pretokenizers": steps}


def _added_token(text: str, at: int) -> dict[str, object]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    return {"id": at, "content": text, **flags}

"""Tokenizers of `transformers`: calls of its classes give what programs give.

Classes of families are made of vocabularies that are trained here; nothing is fetched.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from nacre.nac import tisa
from tests.nac.tisa.corpus import CORPUS, OTHER_SCRIPTS, sample, strings
from tests.nac.tisa.families import FAMILIES, family
from tests.nac.tisa.made import Tokenizer, tokenizer

transformers = pytest.importorskip("transformers")
Wrapped = Any  # a tokenizer of transformers, which has no types here
PLANES = tuple(
    "".join(chr(0x10000 * plane + at) for at in range(0x40, 0x60)) for plane in range(17)
)
RUNS = ("a" * 400, " " * 300, "\u4e2d" * 200, "e\u0301" * 100, "1" * 150, "[SEP]" * 40, "\n" * 90)
EXTREMES = (*CORPUS, *OTHER_SCRIPTS, *PLANES, *RUNS, "", "do not say n't . It 's , we 've !")


def _vocabulary(name: str) -> dict[str, Any]:
    return dict(json.loads(tokenizer(name).to_str())["model"])


def _merges(model: dict[str, Any]) -> list[tuple[str, str]]:
    return [(first, second) for first, second in model["merges"]]


def _bert() -> Wrapped:
    return transformers.BertTokenizer(vocab=_vocabulary("bert_uncased")["vocab"])


def _bert_cased() -> Wrapped:
    return transformers.BertTokenizer(vocab=_vocabulary("bert_cased")["vocab"], do_lower_case=False)


def _gpt2() -> Wrapped:
    model = _vocabulary("gpt2")
    made = transformers.GPT2Tokenizer(vocab=model["vocab"], merges=_merges(model))
    made.pad_token = made.eos_token
    return made


def _roberta() -> Wrapped:
    model = _vocabulary("roberta")
    return transformers.RobertaTokenizer(vocab=model["vocab"], merges=_merges(model))


def _clip() -> Wrapped:
    model = _vocabulary("clip")
    names = ("<|startoftext|>", "<|endoftext|>")
    vocabulary = {**model["vocab"], **{n: len(model["vocab"]) + i for i, n in enumerate(names)}}
    return transformers.CLIPTokenizer(vocab=vocabulary, merges=_merges(model))


def _t5() -> Wrapped:
    pairs = [tuple(pair) for pair in _vocabulary("t5")["vocab"]]
    return transformers.T5Tokenizer(vocab=pairs, extra_ids=5)


def _llama() -> Wrapped:
    model = FAMILIES["llama 2"]()["model"]
    return transformers.LlamaTokenizer(
        vocab=model["vocab"], merges=_merges(model), pad_token="</s>"
    )


def _generic() -> Wrapped:
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(family("xlm-r").to_str()),
        unk_token="<unk>", pad_token="<pad>", eos_token="</s>",
    )  # fmt: skip


CLASSES: dict[str, Callable[[], Wrapped]] = {
    "BertTokenizer": _bert,
    "BertTokenizer, cased": _bert_cased,
    "GPT2Tokenizer": _gpt2,
    "RobertaTokenizer": _roberta,
    "CLIPTokenizer": _clip,
    "T5Tokenizer": _t5,
    "LlamaTokenizer": _llama,
    "PreTrainedTokenizerFast": _generic,
}
EVERY = pytest.mark.parametrize("name", CLASSES)


@cache
def wrapped(name: str) -> Wrapped:
    return CLASSES[name]()


@cache
def program(name: str) -> tisa.TisaProgram:
    return tisa.load(tisa.compile_tokenizer(wrapped(name), unlimited=True))


def _require_plain_calls(name: str, texts: list[str]) -> None:
    """Ids, places, masks, types and both ways back."""
    made, outer = program(name), wrapped(name)
    for text in texts:
        call = outer(text, return_offsets_mapping=True, return_token_type_ids=True)
        whole = made.encode_whole(text)
        assert whole.ids == call["input_ids"], ascii(text)
        assert whole.offsets == call["offset_mapping"], ascii(text)
        assert whole.attention_mask == call["attention_mask"], ascii(text)
        assert whole.type_ids == call["token_type_ids"], ascii(text)
        for skip in (True, False):
            plain = outer.decode(
                whole.ids, skip_special_tokens=skip, clean_up_tokenization_spaces=False
            )
            found = made.decode(whole.ids, skip_special_tokens=skip)
            assert _spaced(name, found) == plain, ascii(text)
            clean = made.decode(whole.ids, skip_special_tokens=skip, clean_up=True)
            assert clean == outer.clean_up_tokenization(found), ascii(text)


def _spaced(name: str, text: str) -> str:
    """The class of CLIP itself makes spaces of suffixes, of which its file says nothing."""
    return text.replace("</w>", " ").strip() if name == "CLIPTokenizer" else text


def _require_calls_with_lengths(name: str, texts: list[str], calls: list[dict[str, Any]]) -> None:
    """Cut and padded as a call asks, pairs too; the program is that of the tokenizer behind."""
    outer = wrapped(name)
    pairs = zip(texts, reversed(texts), strict=True)
    inputs = [*texts, *((one, other) for one, other in pairs if other)]  # "" is no second text
    for asked in calls:
        outer(*texts[:1], **asked)  # sets what the tokenizer behind does
        made = tisa.load(tisa.compile_tokenizer(outer.backend_tokenizer.to_str()))
        for each in inputs:
            parts = (each,) if isinstance(each, str) else each
            call = outer(*parts, return_token_type_ids=True, **asked)
            whole = made.encode_whole(*parts)
            assert whole.ids == call["input_ids"], (asked, ascii(parts))
            assert whole.attention_mask == call["attention_mask"], (asked, ascii(parts))
            assert whole.type_ids == call["token_type_ids"], (asked, ascii(parts))
            assert whole.sequence_ids == call.sequence_ids(0), (asked, ascii(parts))
            rest = [each.ids for each in call.encodings[0].overflowing]
            assert [each.ids for each in whole.overflowing] == rest, (asked, ascii(parts))


LENGTHS: list[dict[str, Any]] = [
    {"truncation": True, "max_length": 12},
    {"truncation": "longest_first", "max_length": 16, "stride": 2, "padding": "max_length"},
    {"padding": "max_length", "max_length": 24},
    {"padding": True, "pad_to_multiple_of": 8},
]


@pytest.mark.sampled(2)
@EVERY
def test_calls_give_what_programs_give(name: str) -> None:
    _require_plain_calls(name, [*sample(EXTREMES, 8), EXTREMES[-1], *strings(8, seed=31)])


@pytest.mark.sampled(2)
@EVERY
def test_calls_with_lengths(name: str) -> None:
    texts = ["The quick brown fox", "of dogs , it 's not the dog 's fault", "\u4e2d\u6587 a"]
    _require_calls_with_lengths(name, texts, list(sample(LENGTHS, 2)))


@pytest.mark.full
@EVERY
def test_two_thousand_strings(name: str) -> None:
    _require_plain_calls(name, [*EXTREMES, *strings(2000, seed=37)])
    _require_calls_with_lengths(name, [*EXTREMES[:20], *strings(40, seed=41)], LENGTHS)


@pytest.mark.sampled(2)
@EVERY
def test_a_batch_is_padded_to_its_longest(name: str) -> None:
    outer, texts = wrapped(name), ["a", "The quick brown fox jumps", "\u4e2d", "of the"]
    call = outer(texts, padding=True, return_token_type_ids=True)
    made = tisa.load(tisa.compile_tokenizer(outer.backend_tokenizer.to_str()))
    batch = made.encode_batch(texts)
    assert [each.ids for each in batch] == call["input_ids"]
    assert [each.attention_mask for each in batch] == call["attention_mask"]
    assert [each.type_ids for each in batch] == call["token_type_ids"]
    skipped = outer.batch_decode(call["input_ids"], skip_special_tokens=True)
    assert [_spaced(name, text) for text in made.decode_batch(call["input_ids"])] == skipped

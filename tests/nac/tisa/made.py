"""Tokenizers of the library, trained here: nothing is fetched."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from tests.nac.tisa.corpus import CORPUS

# By name: the library may be missing, and has no types.
tokenizers = pytest.importorskip("tokenizers")
AddedToken, Regex, Tokenizer = tokenizers.AddedToken, tokenizers.Regex, tokenizers.Tokenizer
decoders, models, normalizers = tokenizers.decoders, tokenizers.models, tokenizers.normalizers
pre_tokenizers, processors = tokenizers.pre_tokenizers, tokenizers.processors
trainers = pytest.importorskip("tokenizers.trainers")

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
Made = Any  # a Tokenizer: the library has no types


def _trained(tokenizer: Made, trainer: Made) -> Made:
    tokenizer.train_from_iterator(CORPUS * 3, trainer)
    return tokenizer


def _bpe(pre: Made, specials: list[str]) -> Made:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=900, special_tokens=specials, initial_alphabet=alphabet, show_progress=False
    )
    made = _trained(tokenizer, trainer)
    made.decoder = decoders.ByteLevel()
    return made


def _word_piece(normalizer: Made, pre: Made) -> Made:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(
        vocab_size=900, special_tokens=specials, show_progress=False
    )
    made = _trained(tokenizer, trainer)
    made.decoder = decoders.WordPiece()
    return made


def _unigram(normalizer: Made, pre: Made) -> Made:
    tokenizer = Tokenizer(models.Unigram())
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre
    trainer = trainers.UnigramTrainer(
        vocab_size=700,
        special_tokens=["<pad>", "</s>", "<unk>"],
        unk_token="<unk>",
        show_progress=False,
    )
    made = _trained(tokenizer, trainer)
    made.decoder = decoders.Metaspace()
    return made


def rounded(tokenizer: Made) -> Made:
    """With scores of 32 bits, as SentencePiece has them."""
    whole = json.loads(tokenizer.to_str())
    for pair in whole["model"]["vocab"]:
        pair[1] = struct.unpack("<f", struct.pack("<f", pair[1]))[0]
    return Tokenizer.from_str(json.dumps(whole))


def gpt2() -> Made:
    return _bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), ["<|endoftext|>"])


def roberta() -> Made:
    made = _bpe(pre_tokenizers.ByteLevel(), ["<s>", "<pad>", "</s>", "<unk>"])
    made.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return made


def llama3() -> Made:
    split = pre_tokenizers.Split(Regex(LLAMA3), "isolated")
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made = _bpe(pre_tokenizers.Sequence([split, level]), ["<|begin|>", "<|endoftext|>"])
    template = processors.TemplateProcessing(
        single="<|begin|> $A", special_tokens=[("<|begin|>", 0)]
    )
    made.post_processor = processors.Sequence([processors.ByteLevel(), template])
    return made


def _bert(normalizer: Made) -> Made:
    made = _word_piece(normalizer, pre_tokenizers.BertPreTokenizer())
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return made


def bert_uncased() -> Made:
    return _bert(normalizers.BertNormalizer())


def bert_cased() -> Made:
    made = _bert(normalizers.BertNormalizer(lowercase=False))
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return made


def t5() -> Made:
    made = rounded(_unigram(normalizers.NFKC(), pre_tokenizers.Metaspace()))
    made.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    return made


def xlm_r() -> Made:
    steps = [normalizers.Nmt(), normalizers.NFKC(), normalizers.Strip()]
    pre = [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    return rounded(_unigram(normalizers.Sequence(steps), pre_tokenizers.Sequence(pre)))


def unigram() -> Made:
    """As the trainer of the library makes it: its scores need 64 bits."""
    return _unigram(normalizers.NFC(), pre_tokenizers.Metaspace())


def words() -> Made:
    steps = [normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()]
    return _word_piece(normalizers.Sequence(steps), pre_tokenizers.Whitespace())


def digits() -> Made:
    pre = [
        pre_tokenizers.WhitespaceSplit(),
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.Punctuation(),
    ]
    return _word_piece(normalizers.NFC(), pre_tokenizers.Sequence(pre))


def letters() -> Made:
    """BPE over characters, with unknown ones and added tokens of every kind."""
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    steps = [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Replace("a", "bb")]
    tokenizer.normalizer = normalizers.Sequence(steps)
    pre = [
        pre_tokenizers.Metaspace(prepend_scheme="never"),
        pre_tokenizers.Digits(),
        pre_tokenizers.Split("e", "merged_with_previous"),
    ]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(pre)
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=["[UNK]", "[X]"], show_progress=False
    )
    made = _trained(tokenizer, trainer)
    made.add_tokens([AddedToken("quick", single_word=True), "ox j"])
    made.add_special_tokens([AddedToken("[MASK]", lstrip=True, rstrip=True)])
    return made


def clip() -> Made:
    """A suffix at the end of words, with every letter for a byte in both forms."""
    tokenizer = Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    steps = [normalizers.NFC(), normalizers.Lowercase()]
    tokenizer.normalizer = normalizers.Sequence(steps)
    pattern = Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+")
    pre = [
        pre_tokenizers.Split(pattern, "removed", invert=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False),
    ]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(pre)
    trainer = trainers.BpeTrainer(
        vocab_size=700, end_of_word_suffix="</w>", show_progress=False, special_tokens=["<s>"]
    )
    whole = json.loads(_trained(tokenizer, trainer).to_str())
    vocabulary = whole["model"]["vocab"]
    for letter in sorted(pre_tokenizers.ByteLevel.alphabet()):
        for token in (letter, f"{letter}</w>"):
            vocabulary.setdefault(token, len(vocabulary))
    return Tokenizer.from_str(json.dumps(whole))


BUILDERS: dict[str, Callable[[], Made]] = {
    build.__name__: build
    for build in (
        gpt2, roberta, llama3, bert_uncased, bert_cased, t5, xlm_r, unigram,
        words, digits, letters, clip,
    )
}  # fmt: skip


@cache
def tokenizer(name: str) -> Made:
    """One of them, trained once."""
    return BUILDERS[name]()

"""Ids become the text of the library, whatever decoder a tokenizer has, or none."""

from __future__ import annotations

import json
import random

import pytest

from nacre.base.diagnostics import InputError
from nacre.nac import tisa
from nacre.nac.tisa.decoders import RESOURCE, Replace, TokenDecoder, encode_decoder
from tests.effort import scaled
from tests.nac.tisa.compared import program
from tests.nac.tisa.corpus import CORPUS
from tests.nac.tisa.made import (
    BUILDERS,
    AddedToken,
    Made,
    Regex,
    Tokenizer,
    decoders,
    models,
    pre_tokenizers,
    processors,
    tokenizer,
)

WORDS = (
    "[UNK]", "a", "b", "##b", "##", "c##d", "\u2581", "\u2581\u2581a", "b\u2581c", "a</w>",
    "</w>b</w>", "<0x41>", "<0xE2>", "<0x82>", "<0xAC>", "<0xff>", "<0x4>", "\u0130", "\u0120a",
    "\u00e9", ".", "'s", "n't", "do not", "|", "<pad>", "  a ", "\n", "\u4e2d", "\U0001f600",
)  # fmt: skip
DECODERS: dict[str, Made] = {
    "none": None,
    "bytes": decoders.ByteLevel(),
    "words": decoders.WordPiece(),
    "words as they are": decoders.WordPiece(prefix="##", cleanup=False),
    "words with another prefix": decoders.WordPiece(prefix="a"),
    "marks": decoders.Metaspace(),
    "marks, none in front": decoders.Metaspace(prepend_scheme="never"),
    "marks, the first": decoders.Metaspace(replacement="b", prepend_scheme="first"),
    "ends": decoders.BPEDecoder(),
    "ends of another kind": decoders.BPEDecoder(suffix="b"),
    "bytes for unknown": decoders.ByteFallback(),
    "one": decoders.Fuse(),
    "stripped": decoders.Strip(content=" ", left=1, right=2),
    "replaced": decoders.Replace("b", "long "),
    "padding": decoders.CTC(),
    "padding as it is": decoders.CTC(pad_token="a", word_delimiter_token="b", cleanup=False),
    "llama": decoders.Sequence(
        [
            decoders.Replace("\u2581", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(content=" ", left=1, right=0),
        ]
    ),
}


def _library(decoder: Made) -> Made:
    made = Tokenizer(
        models.WordPiece({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.add_special_tokens([AddedToken("special", normalized=False), AddedToken("<s>")])
    made.add_tokens(
        [AddedToken("<plain>", normalized=False), AddedToken("\u0131", normalized=False)]
    )
    made.post_processor = processors.TemplateProcessing(
        single="a $A <plain>", special_tokens=[("a", 1), ("<plain>", len(WORDS) + 2)]
    )
    if decoder is not None:
        made.decoder = decoder
    return made


def _same(library: Made, made: tisa.TisaProgram, rounds: int) -> None:
    chance = random.Random(13)
    count = library.get_vocab_size()
    for size in (0, 1, 2, 3, 5, 12) * (rounds // 6):
        ids = [chance.randrange(count) for _ in range(size)]
        for skip in (True, False):
            expected = library.decode(ids, skip_special_tokens=skip)
            assert made.decode(ids, skip_special_tokens=skip) == expected, ids


@pytest.mark.parametrize("name", DECODERS)
def test_every_decoder_gives_the_text_of_the_library(name: str) -> None:
    library = _library(DECODERS[name])
    _same(library, tisa.load(tisa.compile_tokenizer(library)), scaled(600))


@pytest.mark.parametrize("name", BUILDERS)
def test_any_ids_give_the_text_of_the_library(name: str) -> None:
    _same(tokenizer(name), program(name), scaled(60))


def test_a_tokenizer_without_a_decoder() -> None:
    whole = json.loads(tokenizer("gpt2").to_str())
    whole["decoder"] = None
    library = Tokenizer.from_str(json.dumps(whole))
    program = tisa.load(tisa.compile_tokenizer(library))
    for text in CORPUS:
        ids = library.encode(text).ids
        assert program.decode(ids) == library.decode(ids)


def test_an_added_token_of_letters_that_stand_for_bytes() -> None:
    library = Tokenizer.from_str(tokenizer("gpt2").to_str())
    library.add_tokens(["\u0130stanbul", "caf\u00e9"])
    program = tisa.load(tisa.compile_tokenizer(library))
    ids = library.encode("in \u0130stanbul, a caf\u00e9").ids
    assert program.encode("in \u0130stanbul, a caf\u00e9") == ids
    assert program.decode(ids) == library.decode(ids)


def test_a_template_with_an_ordinary_token() -> None:
    library = Tokenizer.from_str(tokenizer("gpt2").to_str())
    and_ = library.token_to_id("&")
    library.post_processor = processors.TemplateProcessing(
        single="& $A", special_tokens=[("&", and_)]
    )
    program = tisa.load(tisa.compile_tokenizer(library))
    ids = library.encode("so").ids
    assert ids[0] == and_
    assert program.decode(ids) == library.decode(ids) == "&so"


def test_usual_tokenizers_need_no_resource() -> None:
    """What files in use do not have, they do not need: the instructions tell it."""
    for name in ("gpt2", "bert_uncased", "t5"):
        assert RESOURCE not in tisa.split(tisa.compile_tokenizer(tokenizer(name))).resources


def test_a_decoder_that_cannot_be_run_encodes_all_the_same() -> None:
    library = _library(decoders.Replace(Regex("a+"), "b"))
    program = tisa.load(tisa.compile_tokenizer(library))
    assert program.encode("a b") == library.encode("a b").ids
    with pytest.raises(InputError, match="NAC70"):
        program.decode([1])


BROKEN = {
    "no json": b"{",
    "unknown": b'{"decoder": [{"type": "Nothing"}]}',
    "field": b'{"decoder": null, "more": 1}',
    "long": encode_decoder(TokenDecoder(tuple(Replace("a", "b") for _ in range(100)))),
    "empty": encode_decoder(TokenDecoder((Replace("", "b"),))),
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_malformed_resource_has_a_code(what: str) -> None:
    bundle = tisa.split(tisa.compile_tokenizer(_library(None)))
    with pytest.raises(InputError, match="NAC65"):
        tisa.load(bundle.manifest, {**bundle.resources, RESOURCE: BROKEN[what]})


def test_a_text_without_end_is_refused() -> None:
    bundle = tisa.split(tisa.compile_tokenizer(_library(None)))
    bomb = encode_decoder(TokenDecoder(tuple(Replace("a", "aaaa") for _ in range(60))))
    program = tisa.load(bundle.manifest, {**bundle.resources, RESOURCE: bomb})
    with pytest.raises(InputError, match="NAC67"):
        program.decode([1, 1])

"""Programs written by hand: order, unknown tokens, options, listings, and every code."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nacre.base.diagnostics import InputError
from nacre.base.rules import RULES
from nacre.nac import tisa
from nacre.nac.rules import tokenizer as codes
from nacre.nac.tisa import manifest
from nacre.nac.tisa.instructions import (
    ISOLATE,
    OPERATIONS,
    REMOVE,
    CutRule,
    Instruction,
    Item,
    step,
)
from nacre.nac.tisa.resources import Entry, Vocabulary
from tests.nac.tisa.test_refused import small

WORDS = ("[UNK]", "##ing", "a", "play", "x")


def vocabulary(*tokens: str, merges: tuple[tuple[str, str], ...] | None = None) -> Vocabulary:
    ordered = sorted(tokens)
    return Vocabulary(tuple(Entry(t, tokens.index(t)) for t in ordered), merges)


def made(*steps: Instruction, words: Vocabulary | None = None) -> tisa.TisaProgram:
    known = words or vocabulary(*WORDS)
    return tisa.load(manifest.write(steps), known.resources())


SPLIT = step("PARTITION_RULES", (CutRule(r"\s+", behaviour=REMOVE),))
PIECES = step("WORDPIECE_ENCODE", "##")


def test_word_piece_gives_one_unknown_for_a_word() -> None:
    """Not one for each character, which the format's own runtime gives."""
    assert made(SPLIT, PIECES).encode("playing playxx a") == [3, 1, 0, 2]


def test_no_space_is_taken_that_a_rule_does_not_name() -> None:
    """The format's own runtime lets tokens that begin with `<` or `[` take a space."""
    rule = step("PARTITION_RULES", (CutRule(r"\[UNK\]", protected=True),))
    program = made(rule, PIECES, words=vocabulary("[UNK]", " ", "a"))
    assert program.encode("a [UNK]") == [0, 0]
    assert program.fragments("a [UNK]") == [("a ", False), ("[UNK]", True)]


def test_a_protected_fragment_is_its_token_with_or_without_space() -> None:
    rule = step("PARTITION_RULES", (CutRule(r"\s*\[UNK\]\s*", protected=True),))
    program = made(rule, PIECES, words=vocabulary("a", "[UNK]"))
    assert program.encode("a \u3000[UNK] \na") == [0, 1, 0]


def test_trim_takes_the_end_of_the_gap() -> None:
    rule = CutRule("b", behaviour=ISOLATE, trim="xx")
    program = made(step("PARTITION_RULES", (rule,)), PIECES)
    assert program.fragments("axxxb xxb") == [
        ("ax", False), ("b", False), (" ", False), ("b", False),
    ]  # fmt: skip


def test_steps_do_not_touch_what_is_protected() -> None:
    rule = step("PARTITION_RULES", (CutRule("AB", protected=True),))
    steps = (rule, step("LOWERCASE"), step("PREPEND", "_"), step("REPLACE", "c", ""), SPLIT)
    assert made(*steps, PIECES).fragments("C ABXc") == [
        ("_", False), ("AB", True), ("_x", False),
    ]  # fmt: skip


def test_replacements_one_after_another_are_as_if_alone() -> None:
    steps = [step("REPLACE", a, b) for a, b in ("ab", "bc", "ca", "xy", "yx", "zz", "x ")]
    assert made(*steps, PIECES).fragments("abcxyz") == [("aaa  z", False)]


def test_unknown_is_found_by_name_and_else_the_first_id() -> None:
    assert made(PIECES, words=vocabulary("a", "<unk>", "[UNK]")).encode("?") == [1]
    assert made(PIECES, words=vocabulary("a", "b")).encode("?") == [0]
    unigram = step("UNIGRAM_ENCODE")
    assert made(unigram, words=vocabulary("a", "b", "c")).encode("??a") == [2, 0]


def test_options_of_encode() -> None:
    program = made(SPLIT, PIECES, step("COMPOSE", (Item("x"), Item(), Item(9), Item(9))))
    text = "a play a"
    assert program.encode(text) == [4, 2, 3, 2, 9, 9]
    assert program.encode(text, add_special_tokens=False) == [2, 3, 2]
    assert program.encode(text, max_length=4) == [4, 2, 9, 9]
    assert program.encode(text, max_length=5, truncate_from="left") == [4, 3, 2, 9, 9]
    assert program.encode("a", pad_to=6, pad_id=7) == [4, 2, 9, 9, 7, 7]
    assert program.encode("a", pad_to=6, pad_id=7, pad_on="left") == [7, 7, 4, 2, 9, 9]
    numbers: dict[str, Any] = {
        "max_length": np.int64(4),
        "pad_to": np.uint8(5),
        "pad_id": np.int32(7),
    }
    assert program.encode(text, **numbers) == [4, 2, 9, 9, 7]
    wrongs: tuple[Any, ...] = (2.0, "2", True, np.array([2, 3]))
    for wrong in wrongs:
        with pytest.raises(InputError, match=r"NAC70.*which is no integer"):
            program.encode(text, max_length=wrong)
    assert program.token_id("play") == 3
    assert program.token_id("nothing") is None


EMITTED: dict[str, Callable[[], object]] = {
    "NAC60": lambda: tisa.load(b"TISA\x02"),
    "NAC61": lambda: tisa.load(b"TISA\x01\x99\0\0\0\0", vocabulary("a").resources()),
    "NAC62": lambda: tisa.load(b"TISA\x01\x01\x01\0\0\0x", vocabulary("a").resources()),
    "NAC63": lambda: made(step("PARTITION_RULES", (CutRule(r"(a)\1"),)), PIECES),
    "NAC64": lambda: made(PIECES, SPLIT),
    "NAC65": lambda: made(
        step("BPE_ENCODE", None), words=vocabulary("a", "b", merges=(("a", "b"),))
    ),
    "NAC66": lambda: made(step("BPE_ENCODE", None), words=vocabulary("a")),
    "NAC67": lambda: made(*[step("REPLACE", "a", "aa")] * 40, PIECES).encode("a" * 100),
    "NAC68": lambda: tisa.compile_tokenizer("{}"),
    "NAC69": lambda: tisa.compile_tokenizer(json.dumps({**small(), "normalizer": {"type": "Odd"}})),
    "NAC70": lambda: made(PIECES).encode("a\ud800"),
}


@pytest.mark.parametrize("code", EMITTED)
def test_every_code_is_met(code: str) -> None:
    with pytest.raises(InputError) as caught:
        EMITTED[code]()
    assert [d.code for d in caught.value.diagnostics] == [code]


def test_every_code_has_a_case() -> None:
    declared = {name for name in vars(codes) if name.startswith("NAC")}
    assert declared == EMITTED.keys()
    assert all(RULES[name].language == "NAC" for name in declared)


WRONG = {
    "two models": (PIECES, PIECES),
    "no model": (SPLIT,),
    "two templates": (PIECES, step("COMPOSE", (Item(),)), step("COMPOSE", (Item(),))),
    "a template first": (step("COMPOSE", (Item(),)), PIECES),
    "a template without text": (PIECES, step("COMPOSE", (Item(1),))),
    "a template with the text twice": (PIECES, step("COMPOSE", (Item(), Item()))),
}


@pytest.mark.parametrize("name", WRONG)
def test_orders_without_meaning(name: str) -> None:
    with pytest.raises(InputError, match="NAC64"):
        made(*WRONG[name])


PAYLOADS = {
    "a form": b"\x02\x04\0\0\0\x03NFX",
    "a category": b"\x04\x04\0\0\0\x01\x02Xx",
    "flags": b"\x10\x05\0\0\0\x01\0\x08\0\0",
    "a behaviour": b"\x10\x06\0\0\0\x01\0\x02\0\0\x03",
    "an empty pattern": b"\x03\x05\0\0\0\0\0\x01\0a",
    "the kind of an item": b"\x30\x02\0\0\0\x01\x02",
    "bytes too many": b"\x15\x01\0\0\0\0",
    "nothing in front": b"\x81\x02\0\0\0\0\0",
    "no table": b"\x84\x04\0\0\0abcd\x21\x01\0\0\0\0",
    "flags of a token": b"\x90\x0c\0\0\0\x01\0\0\0\x08\0\0\0\0\x01\0a",
    "a token without text": b"\x90\x0b\0\0\0\x01\0\0\0\0\0\0\0\0\0\0",
    "a behaviour of split": b"\x91\x04\0\0\0\x01\0a\x05",
    "no length": b"\x93\x04\0\0\0\0\0\0\0",
    "options of a model": b"\xa2\x05\0\0\0\0\0\0\0\x01",
    "an id below": b"\xa3\x04\0\0\0\xfe\xff\xff\xff",
}


@pytest.mark.parametrize("name", PAYLOADS)
def test_payloads_without_meaning(name: str) -> None:
    with pytest.raises(InputError, match="NAC62"):
        tisa.load(b"TISA\x01" + PAYLOADS[name], vocabulary("a").resources())


def test_other_refusals() -> None:
    with pytest.raises(InputError, match=r"NAC66.*names 'gone'"):
        made(PIECES, step("COMPOSE", (Item("gone"), Item())))
    with pytest.raises(InputError, match=r"NAC66.*no vocabulary"):
        tisa.load(manifest.write([PIECES]))
    with pytest.raises(InputError, match=r"NAC70.*no token has the id 99"):
        made(PIECES).decode([99])
    with pytest.raises(InputError, match=r"NAC70.*no room"):
        made(PIECES, step("COMPOSE", (Item(0), Item()))).encode("a", max_length=0)
    raw = tisa.join(manifest.write([PIECES]), vocabulary("a").resources())
    with pytest.raises(InputError, match="NAC05"):
        tisa.load(raw.replace(b"RSRC", b"RSRX"))
    with pytest.raises(InputError, match="NAC14"):
        tisa.load(raw.replace(b"vidx.b", b"vocab.b"[:6]).replace(b"\7\0vocab.b", b"\6\0vocab."))


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"max_length": -1}, "cuts at -1"),
        ({"max_length": 10**30}, "cuts at 1,000,"),
        ({"max_length": 2.5}, "`max_length` is 2.5"),
        ({"max_length": True}, "`max_length` is True"),
        ({"max_length": 3, "truncate_from": "up"}, "`truncate_from` is 'up'"),
        ({"pad_to": 10**12, "pad_id": 0}, "pads to 1,000,000,000,000"),
        ({"pad_to": -1, "pad_id": 0}, "pads to -1"),
        ({"pad_to": "8"}, "`pad_to` is '8'"),
        ({"pad_to": 8, "pad_id": -5}, "pads with the id -5"),
        ({"pad_to": 8, "pad_id": 0.0}, "`pad_id` is 0.0"),
        ({"pad_to": 8}, "the tokenizer names no token to pad with"),
        ({"pad_to": 8, "pad_id": None}, "the tokenizer names no token to pad with"),
        ({"pad_to": 8, "pad_id": 0, "pad_on": 1}, "`pad_on` is 1"),
    ],
)
def test_calls_that_ask_for_what_cannot_be(asked: Any, words: str) -> None:  # noqa: ANN401 - wrong
    with pytest.raises(InputError, match="NAC70") as caught:
        made(PIECES).encode("a", **asked)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"padding": {"length": None, "multiple": 10**30}}, "pads to multiples of 1,000,"),
        ({"padding": {"length": 4, "id": -3}}, "the id -3"),
        ({"truncation": {"max_length": 10**25}}, "cuts at 10,000,"),
        ({"truncation": {"max_length": 4, "stride": 4}}, "overlap by 4"),
        ({"single": [{"type": "text", "index": 1}]}, "a second text"),
    ],
)
def test_a_resource_with_odd_lengths(options: dict[str, Any], words: str) -> None:
    bundle = tisa.split(tisa.compile_tokenizer(json.dumps(small())))
    files = {**bundle.resources, "nacre.encoding.json": json.dumps(options).encode()}
    with pytest.raises(InputError, match="NAC65") as caught:
        tisa.load(bundle.manifest, files)
    assert words in str(caught.value)


@pytest.mark.parametrize("texts", [(), ("a", "b", "c"), ["a"] * 5])
def test_a_batch_has_texts_and_pairs(texts: Any) -> None:  # noqa: ANN401 - wrong on purpose
    with pytest.raises(InputError, match=rf"NAC70.*found {len(texts)} texts"):
        made(PIECES).encode_batch([texts])


def test_one_text_is_no_batch() -> None:
    with pytest.raises(InputError, match=r"NAC70(.|\n)*found one text"):
        made(PIECES).encode_batch("ab")


@pytest.mark.parametrize("text", [None, 5, {"a"}])
def test_what_is_no_text_is_named(text: Any) -> None:  # noqa: ANN401 - wrong on purpose
    for encode in (made(PIECES).encode, made(PIECES).encode_whole):
        with pytest.raises(TypeError, match=f"found {type(text).__name__}"):
            encode(text)


def test_a_piece_is_taken_apart_and_put_together() -> None:
    raw = tisa.compile_tokenizer(json.dumps(small()))
    bundle = tisa.split(raw)
    assert tisa.join(bundle.manifest, bundle.resources) == raw
    alone = tisa.load(bundle.manifest, bundle.resources)
    assert alone.encode("a c [X]") == tisa.load(raw).encode("a c [X]")
    assert sorted(bundle.resources) == ["nacre.decoder.json", "vidx.b", "vocab.b"]


def test_an_added_token_is_no_piece_of_the_model() -> None:
    whole = small()
    whole["added_tokens"][0]["content"] = "ab"
    made_ = tisa.load(tisa.compile_tokenizer(json.dumps(whole)))
    assert made_.encode("ab") == [4]  # as a whole, in the text as it came
    assert made_.encode("AB") == [1, 2]  # not in what the normaliser made


def test_a_listing_names_everything() -> None:
    whole = small()
    whole["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "Nmt"}, {"type": "NFC"}]}
    whole["post_processor"] = {"type": "BertProcessing", "sep": ["a", 1], "cls": ["c", 3]}
    assert tisa.disassemble(tisa.compile_tokenizer(json.dumps(whole))).splitlines() == [
        "TISA 1",
        "   0  PARTITION_RULES",
        r"        PROTECTED \[X\]",
        "   1-30  REPLACE U+0001 .. U+009F (30 characters) ''",
        "  31-45  REPLACE U+0009 .. U+FFFD (15 characters) ' '",
        "  46  UNICODE_NORM 'NFC'",
        "  47  PARTITION_RULES",
        *tisa.disassemble(tisa.compile_tokenizer(json.dumps(small()))).splitlines()[5:8],
        "  48  WORDPIECE_ENCODE '##'",
        "  49  COMPOSE 3 $ids 1",
        "resource vocab.b: 87 bytes",
        "resource vidx.b: 24 bytes",
        "resource nacre.decoder.json: 30 bytes",
        "resource nacre.encoding.json: 242 bytes",
    ]


def test_the_table_of_instructions_is_whole() -> None:
    opcodes = [0x01, 0x02, 0x03, 0x04, 0x07, 0x10, 0x15, 0x20, 0x21, 0x22, 0x30]
    ours = [*range(0x81, 0x87), *range(0x90, 0x94), *range(0xA0, 0xA6)]
    assert list(OPERATIONS) == opcodes + ours
    assert all(op.meaning and op.name.isupper() for op in OPERATIONS.values())


def test_a_pattern_is_named_with_its_rule() -> None:
    cut = step("PARTITION_RULES", (CutRule("a"), CutRule(r"b(c)\2")))
    with pytest.raises(InputError, match=r"rule 1 `b\(c\)\\2` has `\\2` \(character 5\)"):
        made(cut, PIECES)

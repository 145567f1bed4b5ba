"""Manifests and vocabularies: bytes to values and back, and files of strangers."""

from __future__ import annotations

import math
import random
import struct
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.nac import tisa
from nacre.nac.format.cursor import Broken
from nacre.nac.tisa import manifest
from nacre.nac.tisa.instructions import (
    CATEGORIES,
    FORMS,
    ISOLATE,
    REMOVE,
    CutRule,
    Instruction,
    Item,
    Operand,
    SoughtToken,
    step,
)
from nacre.nac.tisa.resources import Entry, Vocabulary, read_vocabulary
from tests.clock import in_time

TEXTS = st.text(max_size=12)
RULES = st.builds(
    CutRule,
    TEXTS,
    st.booleans(),
    st.sampled_from([None, REMOVE, ISOLATE]),
    st.none() | TEXTS,
)
ITEMS = st.builds(Item, st.none() | st.integers(-(2**31), 2**31 - 1) | TEXTS)
SYMBOLS = st.lists(
    st.builds(SoughtToken, st.text(min_size=1, max_size=4), st.integers(0, 99), st.integers(0, 7)),
    max_size=3,
).map(tuple)
OPERANDS: dict[str, tuple[st.SearchStrategy[Operand], ...]] = {
    "LOWERCASE": (),
    "UNICODE_NORM": (st.sampled_from(FORMS),),
    "REPLACE": (st.text(min_size=1, max_size=5), TEXTS),
    "FILTER_CATEGORY": (st.lists(st.sampled_from(sorted(CATEGORIES)), max_size=4).map(tuple),),
    "PREPEND": (TEXTS,),
    "PARTITION_RULES": (st.lists(RULES, max_size=4).map(tuple),),
    "BYTE_ENCODE": (),
    "BPE_ENCODE": (st.none() | TEXTS,),
    "WORDPIECE_ENCODE": (TEXTS,),
    "UNIGRAM_ENCODE": (),
    "COMPOSE": (st.lists(ITEMS, max_size=5).map(tuple),),
    "SENTENCE_TEXT": (st.integers(0, 15), SYMBOLS, st.binary(max_size=20)),
    "FIND_TOKENS": (SYMBOLS,),
    "SPLIT": (TEXTS, st.sampled_from([0, 1, 4, 9])),
    "BPE_MODEL": (st.integers(-1, 9), st.integers(0, 15), TEXTS, TEXTS),
    "SENTENCE_UNIGRAM": (st.integers(-1, 9), st.sampled_from([0, 2]), SYMBOLS),
    "SENTENCE_WORDS": (st.integers(-1, 9), st.sampled_from([0, 2])),
}
INSTRUCTIONS = st.sampled_from(sorted(OPERANDS)).flatmap(
    lambda name: st.tuples(*OPERANDS[name]).map(lambda operands: step(name, *operands))
)


@given(st.lists(INSTRUCTIONS, max_size=6))
def test_instructions_survive_their_bytes(instructions: list[Instruction]) -> None:
    raw = manifest.write(instructions)
    assert list(manifest.read(raw)) == instructions
    assert manifest.write(manifest.read(raw)) == raw


@given(st.binary(max_size=40))
def test_any_bytes_are_a_manifest_or_refused(tail: bytes) -> None:
    raw = b"TISA\x01" + tail
    try:
        made = manifest.read(raw)
    except Broken:
        return
    assert manifest.write(made) == raw


def test_the_bytes_of_every_instruction() -> None:
    """Byte for byte as nac_facts.md has them, written by hand."""
    program = (
        step("LOWERCASE"),
        step("UNICODE_NORM", "NFD"),
        step("REPLACE", "a", "bc"),
        step("FILTER_CATEGORY", ("Mn", "Cc")),
        step("PREPEND", "_"),
        step(
            "PARTITION_RULES",
            (CutRule("x", True), CutRule("y", False, REMOVE), CutRule("z", True, ISOLATE, " ")),
        ),
        step("BYTE_ENCODE"),
        step("WORDPIECE_ENCODE", "##"),
        step("COMPOSE", (Item(101), Item(), Item("[SEP]"))),
    )
    assert manifest.write(program).hex(" ") == " ".join(
        (
            "54 49 53 41 01",
            "01 00 00 00 00",
            "02 04 00 00 00 03 4e 46 44",
            "03 07 00 00 00 01 00 61 02 00 62 63",
            "04 07 00 00 00 02 02 4d 6e 02 43 63",
            "07 03 00 00 00 01 00 5f",
            "10 12 00 00 00 03 00 01 01 00 78 02 01 00 79 01 07 01 00 7a 02 01 20",
            "15 00 00 00 00",
            "21 03 00 00 00 02 23 23",
            "30 10 00 00 00 03 01 01 65 00 00 00 00 01 00 05 5b 53 45 50 5d",
        )
    )
    assert manifest.write([step("BPE_ENCODE", None)])[5:] == b"\x20\0\0\0\0"
    assert manifest.write([step("BPE_ENCODE", "</w>")])[5:] == b"\x20\x05\0\0\0\x04</w>"
    assert manifest.write([step("UNIGRAM_ENCODE")])[5:] == b"\x22\0\0\0\0"


def test_the_bytes_of_a_vocabulary() -> None:
    """`vocab.b`, `vidx.b` and `merges.b` of three tokens with a hole among the ids."""
    entries = (Entry("a", 3, -1.5), Entry("ab", 0), Entry("b", 1, math.nan))
    files = Vocabulary(entries, (("a", "b"),)).resources()
    parts = [
        struct.pack("<H", len(t)) + t + struct.pack("<i", i) + s
        for t, i, s in (
            (b"a", 3, struct.pack("<f", -1.5)),
            (b"ab", 0, b"\0\0\0\0"),
            (b"b", 1, struct.pack("<f", math.nan)),
        )
    ]
    assert files["vocab.b"] == struct.pack("<4I", 3, 0, 11, 23) + b"".join(parts)
    assert files["vidx.b"] == struct.pack("<5I", 4, 11, 23, 0, 0)
    assert files["merges.b"] == struct.pack("<IH", 1, 1) + b"a" + struct.pack("<H", 1) + b"b"
    back = read_vocabulary(files)
    assert back.resources() == files
    assert [e.is_piece for e in back.entries] == [True, True, False]


@pytest.mark.parametrize(
    ("wide", "told"),
    [
        ((-1.1, math.nan), None),
        ((-1.1, -2.0), "has -2.0 for 'b', whose score is nan"),
        ((-1.2, math.nan), "has -1.2 for 'a', whose score is -1.1"),
        ((math.nan, math.nan), "has nan for 'a'"),
        ((-1.1,), "`nacre.scores.b` needs 16 bytes, 8 are left"),
        ((-1.1, math.nan, 0.0), "`nacre.scores.b` has 8 bytes too many"),
    ],
)
def test_scores_of_64_bits_round_to_those_of_32(wide: tuple[float, ...], told: str | None) -> None:
    entries = (
        Entry("a", 0, struct.unpack("<f", struct.pack("<f", -1.1))[0]),
        Entry("b", 1, math.nan),
    )
    files = Vocabulary(entries, None, wide).resources()
    if told is None:
        back = read_vocabulary(files)
        assert back.scores[0] == -1.1
        assert back.resources() == files
        return
    with pytest.raises(Broken) as broken:
        read_vocabulary(files)
    assert broken.value.rule.code == ("NAC04" if "are left" in told else "NAC65")
    assert told in broken.value.message


@given(st.dictionaries(TEXTS, st.floats(width=32, allow_infinity=False), max_size=8), st.data())
def test_vocabularies_survive_their_bytes(scores: dict[str, float], data: st.DataObject) -> None:
    ids = data.draw(st.permutations(range(2 * len(scores))))
    tokens = sorted(scores)
    entries = tuple(Entry(t, i, scores[t]) for t, i in zip(tokens, ids, strict=False))
    merges = data.draw(st.none() | st.lists(st.tuples(TEXTS, TEXTS), max_size=4).map(tuple))
    files = Vocabulary(entries, merges).resources()
    assert read_vocabulary(files).resources() == files


MOST_SECONDS = 1.0


def _small() -> bytes:
    """A program with every kind of instruction but two models."""
    tokens = ["<s>", "<unk>", "a", "ab", "b", "\u0120", "\u00c4", "\u0142"]
    entries = tuple(Entry(t, i) for i, t in enumerate(sorted(tokens)))
    program = (
        step("PARTITION_RULES", (CutRule("<s>", True), CutRule(r"\s*<unk>", True, None, " "))),
        step("LOWERCASE"),
        step("UNICODE_NORM", "NFC"),
        step("REPLACE", "x", "ab"),
        step("FILTER_CATEGORY", ("Cc",)),
        step("PREPEND", " "),
        step("PARTITION_RULES", (CutRule(r" ?\p{L}+|\s+(?!\S)", False, ISOLATE),)),
        step("BYTE_ENCODE"),
        step("BPE_ENCODE", None),
        step("COMPOSE", (Item("<s>"), Item(), Item(3))),
    )
    files = Vocabulary(entries, (("a", "b"),)).resources()
    return tisa.join(manifest.write(program), files)


@in_time(MOST_SECONDS)
def _tried(raw: bytes) -> bool:
    """Load, list and run: findings with our codes or a result. True: it was refused."""
    refused = False
    try:
        tisa.disassemble(raw)
        made = tisa.load(raw)
        made.decode(made.encode("ab <s> xab\u0142 <unk>" * 3))
    except InputError as error:
        refused = all(d.code.startswith("NAC") for d in error.diagnostics)
        if not refused:
            raise
    return refused


def test_cut_at_every_byte() -> None:
    raw = _small()
    assert not _tried(raw)
    for size in range(len(raw)):
        assert _tried(raw[:size]), size


def require_findings_alone(places: list[int], masks: tuple[int, ...]) -> None:
    raw = bytearray(_small())
    for place in places:
        for mask in masks:
            raw[place] ^= mask
            _tried(bytes(raw))
            raw[place] ^= mask


def test_every_byte_another() -> None:
    size = len(_small())
    require_findings_alone(list(range(size)), (0x01, 0x80))


@pytest.mark.full
def test_every_byte_every_other() -> None:
    size = len(_small())
    require_findings_alone(list(range(size)), tuple(range(1, 256)))


def test_random_bytes_in_random_places() -> None:
    draw = random.Random(3)
    for _ in range(300):
        raw = bytearray(_small())
        for _ in range(draw.randrange(1, 6)):
            raw[draw.randrange(len(raw))] = draw.randrange(256)
        _tried(bytes(raw))


GREEDY = {
    "text doubles": (step("REPLACE", "a", "a" * 60_000),) * 3,
    "text doubles often": (step("REPLACE", "a", "aa"),) * 60,
    "prefix for every fragment": (
        step("PARTITION_RULES", (CutRule("a", False, ISOLATE),)),
        step("PREPEND", "b" * 60_000),
    ),
    "many steps": (step("LOWERCASE"),) * 100_000,
    "large automaton": (
        step("PARTITION_RULES", (CutRule("(?:a|b)*a(?:a|b){250}c", False, ISOLATE),)),
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("name", GREEDY)
def test_programs_that_want_the_world(name: str) -> None:
    """Refused within bounds that the text's length sets."""
    files = Vocabulary((Entry("a", 0), Entry("b", 1)), ()).resources()
    raw = tisa.join(manifest.write((*GREEDY[name], step("BPE_ENCODE", None))), files)
    made = tisa.load(raw)
    draw = random.Random(1)
    text = "".join(draw.choice("ab") for _ in range(8000))
    tracemalloc.start()
    start = time.process_time()
    with pytest.raises(InputError, match="NAC67"):
        made.encode(text)
    seconds, peak = time.process_time() - start, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seconds < 60  # tracing memory makes all of this many times slower
    assert peak < 64 * 2**20 + 10 * len(raw)


def test_counts_that_promise_too_much() -> None:
    for payload in (b"\xff\xff", b"\xff\xff\0\xff\xff"):
        raw = b"TISA\x01\x10" + struct.pack("<I", len(payload)) + payload
        with pytest.raises(InputError, match=r"NAC12|NAC04"):
            tisa.load(raw, {"vocab.b": b""})
    with pytest.raises(InputError, match="NAC65"):
        tisa.load(b"TISA\x01", {"vocab.b": struct.pack("<I", 2**32 - 1)})

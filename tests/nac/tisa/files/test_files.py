"""Files of SentencePiece, tiktoken and tekken without their packages: what they say; limits."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from nacre.base.diagnostics import InputError
from nacre.nac import tisa
from nacre.nac.tisa.files.sentence_model import ModelType, PieceType
from tests.effort import PROFILE
from tests.nac.tisa.files.sentence_files import (
    BYTES,
    CONTROLS,
    UNKNOWN,
    data,
    normal,
    number,
    piece,
    ranked_file,
    sentence_file,
    varint,
)

MARK = "\u2581"
PIECES = [UNKNOWN, *CONTROLS, *normal(MARK, "a", "b", "ab", f"{MARK}a", "ba", "\u00e9")]
USER = ("aba", 0.0, PieceType.USER_DEFINED)


def load(folder: Path, raw: bytes, name: str = "spiece.model", **options: Any) -> tisa.TisaProgram:  # noqa: ANN401 - those of compile_tokenizer
    (folder / name).write_bytes(raw)
    return tisa.load(tisa.compile_tokenizer(folder / name, **options))


def tokens(program: tisa.TisaProgram, text: str) -> list[str]:
    return program.encode_whole(text).tokens


def test_unigram(tmp_path: Path) -> None:
    program = load(tmp_path, sentence_file(PIECES))
    found = program.encode_whole("  ab  xya ")
    assert found.tokens == [MARK, "ab", MARK, "xy", "a"]
    assert found.ids == [3, 6, 3, 0, 4]
    assert found.offsets == [(2, 2), (2, 4), (4, 6), (6, 8), (8, 9)]
    assert program.decode(found.ids) == "ab  \u2047 a"


def test_bpe_joins_the_highest_score_first_and_bytes_stand_for_the_unknown(tmp_path: Path) -> None:
    raw = sentence_file([*PIECES, *BYTES], ModelType.BPE, has_bytes=True)
    program = load(tmp_path, raw)
    assert tokens(program, "bab \u00fca") == [MARK, "b", "ab", MARK, "<0xC3>", "<0xBC>", "a"]
    assert program.decode(program.encode("bab \u00fca")) == "bab \u00fca"


@pytest.mark.parametrize("model", [ModelType.BPE, ModelType.CHAR, ModelType.UNIGRAM])
def test_symbols_of_users_win(tmp_path: Path, model: ModelType) -> None:
    program = load(tmp_path, sentence_file([*PIECES, USER], model))
    assert "aba" in tokens(program, "bababab")


def test_words_and_characters(tmp_path: Path) -> None:
    words = load(tmp_path, sentence_file(PIECES, ModelType.WORD))
    assert tokens(words, "a x a") == [f"{MARK}a", f"{MARK}x", f"{MARK}a"]
    assert words.encode("a x y a") == [7, 0, 7]
    assert tokens(load(tmp_path, sentence_file(PIECES, ModelType.CHAR)), "ab") == [MARK, "a", "b"]


@pytest.mark.parametrize(
    ("normalizer", "text", "expected"),
    [
        (number(3, 0), " a  b ", ["a", MARK, "b"]),
        (number(4, 0), " a", [MARK, MARK, "a"]),
        (number(3, 0) + number(5, 0), "a b", ["a", " ", "b"]),
    ],
)
def test_options_of_white_space(
    tmp_path: Path, normalizer: bytes, text: str, expected: list[str]
) -> None:
    assert tokens(load(tmp_path, sentence_file(PIECES, normalizer=normalizer)), text) == expected


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"\x0a", "no end"),
        (b"\x0a\x05a", "are left"),
        (b"\x00\x01", "number 0"),
        (b"\x0b", "kind 3"),
        (b"\xff" * 11, "no end"),
        (piece(UNKNOWN) * 2, "same text"),
        (piece(("a", 0.0, PieceType.NORMAL)), "0 pieces stand for what is unknown"),
        (piece(("", 0.0, PieceType.NORMAL)), "the text ''"),
        (piece(("a", float("nan"), PieceType.NORMAL)), "the score nan"),
        (data(1, data(1, b"\xff")), "no UTF-8"),
        (data(1, data(1, b"a") + number(3, 9)), "kind 9"),
        (data(1, data(1, b"a") + number(2, 9)), "no number of 32 bits"),
        (number(1, 1), "bytes are expected"),
        (data(2, data(3, b"")), "a number is expected"),
        (sentence_file([UNKNOWN], has_bytes=True), "not all 256"),
        (sentence_file([UNKNOWN], normalizer=data(2, b"abc")), "malformed"),
        (sentence_file([UNKNOWN]) + data(5, data(2, b"x")), "decoded texts"),
        (sentence_file([UNKNOWN, ("x", 0.0, PieceType.CONTROL)], ModelType.BPE), "no text has"),
        (sentence_file([UNKNOWN, ("xy", 0.0, PieceType.UNUSED)], ModelType.BPE), "not be used"),
    ],
)
def test_wrong_files_of_sentencepiece(tmp_path: Path, raw: bytes, words: str) -> None:
    with pytest.raises(InputError, match=f"NAC6[89](.|\n)*{words}"):
        load(tmp_path, raw)


def test_no_part_of_a_file_does_worse_than_a_finding(tmp_path: Path) -> None:
    raw = sentence_file([*PIECES, USER], ModelType.BPE, normalizer=number(3, 0))
    for end in range(0, len(raw), 1 if PROFILE != "fast" else 3):
        for broken in (raw[:end], raw[:end] + bytes([raw[end] ^ 0xFF]) + raw[end + 1 :]):
            with suppress(InputError):
                assert load(tmp_path, broken).encode("ab") != []


def test_a_counted_repetition_of_tiktoken_gives_nothing_back(tmp_path: Path) -> None:
    raw = ranked_file([b"12", b"45", b"345", b"123", b"1234", b"12345"])
    program = load(tmp_path, raw, "cl100k_base.tiktoken")
    assert [tokens(program, digits) for digits in ("12345", "12")] == [["123", "45"], ["12"]]


def test_tiktoken(tmp_path: Path) -> None:
    raw = ranked_file([b"ab", b" a", b"\xc3\xa9", b"abc"])
    program = load(tmp_path, raw, "cl100k_base.tiktoken", special_tokens={"<|end|>": 300})
    assert program.encode("abc ab\u00e9<|end|>") == [259, 32, 256, 258, 300]
    assert program.decode([259, 32, 256, 258, 300], skip_special_tokens=False) == (
        "abc ab\u00e9<|end|>"
    )
    assert program.encode_whole("a\u00e9").offsets == [(0, 1), (1, 2)]
    named = load(tmp_path, raw, "other.tiktoken", pattern="o200k_base")
    assert named.encode("abc") == load(tmp_path, raw, "x.model", pattern=r"\w+").encode("abc")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (ranked_file([]) + b"YQ== x", "line 257"),
        (ranked_file([b"a"]), "there twice"),
        (b"YQ== 0\n", "no token for the byte"),
        (b"Y= 0\n", "no base64"),
        (b"= 0\n", "no base64|empty"),
        (b"YQ== 99999999\n", "too large"),
    ],
)
def test_wrong_files_of_tiktoken(tmp_path: Path, raw: bytes, words: str) -> None:
    with pytest.raises(InputError, match=f"NAC6[89](.|\n)*({words})"):
        load(tmp_path, raw, "gpt2.tiktoken")


@pytest.mark.parametrize("pattern", [None, r"(a)\1", "("])
def test_tiktoken_needs_a_pattern_of_linear_time(tmp_path: Path, pattern: str | None) -> None:
    with pytest.raises(InputError, match="NAC69"):
        load(tmp_path, ranked_file([]), "mine.tiktoken", pattern=pattern)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pattern": 5}, "`pattern` is a int"),
        ({"special_tokens": ["<e>"]}, "`special_tokens` is a list"),
        ({"special_tokens": {"<e>": "5"}}, "'<e>' with '5'"),
        ({"special_tokens": {"<e>": -5}}, "'<e>' with -5"),
        ({"special_tokens": {5: 300}}, "5 with 300"),
    ],
)
def test_wrong_requests_of_tiktoken(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=f"NAC68(.|\n)*{words}"):
        load(tmp_path, ranked_file([]), "gpt2.tiktoken", **options)


def test_a_file_of_tiktoken_is_known_by_its_name_where_it_is_empty(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no token for the byte 0x00"):
        load(tmp_path, b"", "gpt2.tiktoken")


@pytest.mark.parametrize("options", [{"pattern": r"\w+"}, {"special_tokens": {"<e>": 300}}])
def test_files_that_say_it_themselves_take_no_pattern(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    hub = json.dumps({"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}})
    raw = json.dumps(tekken()).encode()
    for name, data_ in (("spiece.model", sentence_file(PIECES)), ("tekken.json", raw)):
        with pytest.raises(InputError, match=r"NAC69(.|\n)*for files of tiktoken"):
            load(tmp_path, data_, name, **options)
    with pytest.raises(InputError, match=r"NAC69(.|\n)*for files of tiktoken"):
        tisa.compile_tokenizer(hub, **options)
    assert tisa.compile_tokenizer(hub)


def tekken(**config: Any) -> dict[str, Any]:  # noqa: ANN401 - members of JSON
    listed = [*(bytes([byte]) for byte in range(0x100)), b"ab", b"abc"]
    rows = [
        {"rank": at, "token_bytes": base64.b64encode(t).decode()} for at, t in enumerate(listed)
    ]
    sizes = {"default_vocab_size": 277, "default_num_special_tokens": 20}
    return {"config": {"pattern": r"\w+|.|\n", **sizes, **config}, "vocab": rows}


def test_tekken(tmp_path: Path) -> None:
    program = load(tmp_path, json.dumps(tekken()).encode(), "tekken.json")
    # The last rank has no place in the vocabulary.
    assert program.encode("abc [INST]")[:2] == [20 + 256, 20 + ord("c")]
    assert 3 not in program.encode("[INST]")
    assert program.token(3) == "[INST]"
    assert program.decode([1, 276, 2]) == "ab"
    folder = tisa.load(tisa.compile_tokenizer(tmp_path))
    assert folder.encode("abc") == program.encode("abc")


@pytest.mark.parametrize(
    "whole",
    [
        {"token_bytes": 1},
        {"config": {}, "vocab": []},
        tekken(default_vocab_size="x"),
        tekken(default_vocab_size=-1),
        tekken(pattern=7),
        tekken() | {"vocab": [{"rank": 0, "token_bytes": 5}]},
        tekken() | {"vocab": [{"rank": 0, "token_bytes": "?"}]},
        tekken() | {"special_tokens": [{"token_str": 4, "token_bytes": ""}]},
    ],
)
def test_wrong_files_of_tekken(tmp_path: Path, whole: object) -> None:
    with pytest.raises(InputError, match=r"^tekken.json:.*NAC6[89]"):
        load(tmp_path, json.dumps(whole).encode(), "tekken.json")


def test_varints_of_the_writer() -> None:
    assert varint(300) == b"\xac\x02"

"""Streams hold back the bytes of a character until it is whole."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.nac import tisa
from tests.nac.tisa.files.sentence_files import (
    CONTROLS,
    UNKNOWN,
    normal,
    ranked_file,
    sentence_file,
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> tisa.TisaProgram:
    """A token for every byte, which is its id, and a special one."""
    path = tmp_path_factory.mktemp("bytes") / "gpt2.tiktoken"
    path.write_bytes(ranked_file([]))
    return tisa.load(tisa.compile_tokenizer(path, special_tokens={"<|end|>": 256}))


def test_bytes_wait_for_their_character(program: tisa.TisaProgram) -> None:
    stream = program.stream()
    ids = program.encode("a\u00e9\U0001f600b")
    assert [stream.push(i) for i in ids] == ["a", "", "\u00e9", "", "", "", "\U0001f600", "b"]
    assert stream.finish() == ""


def test_several_ids_and_special_tokens(program: tisa.TisaProgram) -> None:
    assert program.stream().push([97, 256, 98]) == "ab"
    assert program.stream(skip_special_tokens=False).push([97, 256, 98]) == "a<|end|>b"


def test_half_a_character_at_the_end_is_said(program: tisa.TisaProgram) -> None:
    stream = program.stream()
    assert stream.push([97, 0xC3]) == "a"
    assert stream.finish() == "\ufffd"
    assert stream.push(98) == "b"


def test_bytes_that_are_no_character_do_not_wait_for_ever(program: tisa.TisaProgram) -> None:
    stream = program.stream()
    given = "".join(stream.push(0xFF) for _ in range(1000))
    assert 900 < len(given) <= 1000
    assert given + stream.finish() == "\ufffd" * 1000


def test_a_batch_of_ids(program: tisa.TisaProgram) -> None:
    assert program.decode_batch([[97], [], [98, 256]]) == ["a", "", "b"]


def test_ids_of_numpy(program: tisa.TisaProgram) -> None:
    stream = program.stream()
    ids = np.array([97, 98], np.int64)
    assert [stream.push(ids[0]), stream.push(ids)] == ["a", "ab"]
    assert program.decode(ids) == "ab"
    with pytest.raises(InputError, match=r"NAC70(.|\n)*one of ndarray"):
        program.decode(ids.reshape(1, 2))


def test_an_id_that_there_is_not_leaves_the_stream_as_it_was(program: tisa.TisaProgram) -> None:
    stream = program.stream()
    assert stream.push([97, 0xC3]) == "a"
    with pytest.raises(InputError, match="NAC70"):
        stream.push(10**9)
    assert stream.push(0xA9) == "\u00e9"


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> tisa.TisaProgram:
    """A tokenizer of SentencePiece, which drops all marks before the first word."""
    path = tmp_path_factory.mktemp("marked") / "spiece.model"
    mark = "\u2581"
    path.write_bytes(sentence_file([UNKNOWN, *CONTROLS, *normal(mark, "a", f"{mark}b")]))
    return tisa.load(tisa.compile_tokenizer(path))


def test_spaces_in_a_row_are_kept(marked: tisa.TisaProgram) -> None:
    mark, letter = marked.token_id("\u2581"), marked.token_id("a")
    assert mark is not None
    assert letter is not None
    ids = [mark, letter, mark, mark, mark, letter, *[mark] * 100, letter]
    whole = "a   a" + " " * 100 + "a"
    stream = marked.stream()
    assert marked.decode(ids) == whole
    assert stream.push(ids) + stream.finish() == whole


@given(ids=st.lists(st.sampled_from([0, 1, 2, 3, 3, 3, 4, 5]), max_size=90))
def test_a_stream_gives_the_text_of_all_ids(marked: tisa.TisaProgram, ids: list[int]) -> None:
    stream = marked.stream()
    assert stream.push(ids) + stream.finish() == marked.decode(ids)


# Bytes of which characters are made, and some that belong to none.
PARTS: list[str | bytes] = [
    *("a", "\u00e9", "\u20ac", "\U0001f600"),
    *(b"\xff", b"\xc3", b"\xa9", b"\xed\xa0", b"\xf0\x9f"),
]
ROWS = st.tuples(st.lists(st.sampled_from(PARTS), max_size=40), st.sampled_from([1, 1, 6])).map(
    lambda row: b"".join(p.encode() if isinstance(p, str) else p for p in row[0]) * row[1]
)


@given(raw=ROWS)
def test_bytes_of_all_kinds_are_as_decoded(program: tisa.TisaProgram, raw: bytes) -> None:
    stream = program.stream()
    expected = raw.decode("utf-8", errors="replace")
    assert stream.push(list(raw)) + stream.finish() == expected == program.decode(list(raw))


@pytest.fixture(scope="module")
def falling_back() -> tisa.TisaProgram:
    """A tokenizer with the letter a, whose other characters are bytes."""
    vocabulary = {"<unk>": 0, "a": 1, **{f"<0x{byte:02X}>": 2 + byte for byte in range(256)}}
    model = {"type": "BPE", "unk_token": "<unk>", "byte_fallback": True, "merges": []}
    steps = [{"type": "ByteFallback"}, {"type": "Fuse"}]
    decoder = {"type": "Sequence", "decoders": steps}
    tokenizer = {"version": "1.0", "model": {**model, "vocab": vocabulary}, "decoder": decoder}
    return tisa.load(tisa.compile_tokenizer(json.dumps(tokenizer)))


def characters_before_a_fault(row: bytes) -> str:
    """What a stream gives of bytes in a row."""
    try:
        return row.decode("utf-8")
    except UnicodeDecodeError as error:
        return row[: error.start].decode() + "\ufffd" * (len(row) - error.start)


@given(raw=ROWS)
def test_a_row_of_bytes_is_text_up_to_its_first_fault(
    falling_back: tisa.TisaProgram, raw: bytes
) -> None:
    ids = [1 if byte == ord("a") else 2 + byte for byte in raw]
    stream = falling_back.stream()
    rows = [characters_before_a_fault(row) for row in raw.split(b"a")]
    found = stream.push(ids) + stream.finish()
    assert found == "a".join(rows)
    if "\ufffd" not in found:
        assert found == falling_back.decode(ids)


def test_characters_that_were_given_stay(falling_back: tisa.TisaProgram) -> None:
    ids = [2 + byte for byte in b"\xc3\xa9\xff"]
    stream = falling_back.stream()
    assert [stream.push(i) for i in ids] == ["", "\u00e9", ""]
    assert stream.finish() == "\ufffd"
    assert falling_back.decode(ids) == "\ufffd" * 3

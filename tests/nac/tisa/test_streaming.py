"""Streams hold back the bytes of a character until it is whole."""

from __future__ import annotations

from pathlib import Path

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


@pytest.fixture
def program(tmp_path: Path) -> tisa.TisaProgram:
    """A token for every byte, which is its id, and a special one."""
    path = tmp_path / "gpt2.tiktoken"
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
    assert set(given) == {"\ufffd"}


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

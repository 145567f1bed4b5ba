"""Streams hold back the bytes of a character until it is whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from nacre.nac import tisa
from tests.nac.tisa.files.sentence_files import ranked_file


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

"""`nacre llm info`: what it says of a file, and of files that are none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.runner import invoke
from tests.llm.gguf_bytes import ARRAY, F32, TEXT, Pair, gguf_bytes, small_file


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.gguf"
    path.write_bytes(small_file())
    return path


def test_a_file_is_shown_with_its_metadata_types_and_tensors(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = invoke(capsys, "llm", "info", "--tensors", small)
    assert done.status == 0
    lines = done.out.splitlines()
    assert lines[0].startswith("GGUF 3, little-endian: ")
    assert "3 values: one, zwölf," in done.out
    assert "Q8_0        1        64     68   8.5" in done.out
    assert "grid    3 x 4   F32      48" in done.out


def test_json_has_everything(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(invoke(capsys, "llm", "info", "--format", "json", small).out)
    assert found["metadata"]["a.ids"] == [1, 2, 3]
    assert [(t["name"], t["type"]) for t in found["tensor_list"]] == [
        ("grid", "F32"),
        ("q8", "Q8_0"),
    ]
    assert (found["tensors"], found["elements"]) == (2, 76)


def test_numbers_that_json_lacks_are_texts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "odd.gguf"
    path.write_bytes(gguf_bytes([Pair("a", F32, float("inf")), Pair("b", ARRAY, [], TEXT)]))
    found = json.loads(invoke(capsys, "llm", "info", "--format", "json", path).out)
    assert found["metadata"] == {"a": "inf", "b": []}


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_file_does_not_drive_the_terminal(
    tmp_path: Path, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "escapes.gguf"
    evil = "\x1b[2J\x07\x9b31m"
    pairs = [Pair(f"k{evil}", TEXT, evil), Pair("list", ARRAY, [evil])]
    path.write_bytes(gguf_bytes(pairs))
    done = invoke(capsys, "llm", "info", "--format", output, path)
    assert done.status == 0
    assert not any(sign in done.text for sign in ("\x1b", "\x07", "\x9b"))


def test_a_broken_file_has_its_code_and_byte(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(small_file()[:40])
    done = invoke(capsys, "llm", "info", path)
    assert done.status == 1
    assert "error[GGF04]: at byte " in done.err


def test_a_file_that_is_not_there_is_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(capsys, "llm", "info", tmp_path / "none.gguf").status == 2


def test_other_verbs_say_who_reads_such_files(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = invoke(capsys, "compile", small, "--device", "npm4k", "-o", "x")
    assert done.status == 1
    assert "error[MDL01]" in done.err
    assert "`nacre llm`" in done.err

"""Hints name options at a terminal and arguments in Python."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import nacre
from nacre.base.hints import at_terminal, setting, text_for_reader
from nacre.base.source import whole_file
from nacre.compile.rules import CMP04
from nacre.nem import check
from tests.cli.runner import invoke

SOURCES = Path(nacre.__file__).parent
# A help that names an option outside `setting`: what the library says is read in Python too.
OPTION = re.compile(r"help\w* ?= ?\(?\s*f?[\"'](?:(?!setting)[^\n])*`--[a-z]")


def test_a_setting_is_spelt_for_its_reader() -> None:
    help_ = f"allow more: {setting('`--max-bytes`', '`max_bytes=`')}, or less work"
    assert text_for_reader(help_) == "allow more: `max_bytes=`, or less work"
    with at_terminal():
        assert text_for_reader(help_) == "allow more: `--max-bytes`, or less work"


def test_a_message_names_the_option_or_the_argument() -> None:
    where, message = whole_file("<here>"), f"{setting('`--expect`', '`expected`')} has no array"
    assert CMP04.at(where, message).message == "`expected` has no array"
    with at_terminal():
        assert CMP04.at(where, message).message == "`--expect` has no array"


def test_the_library_names_no_options_without_their_arguments() -> None:
    files = [f for f in SOURCES.rglob("*.py") if "cli" not in f.relative_to(SOURCES).parts]
    found = {str(f): OPTION.findall(f.read_text(encoding="utf-8")) for f in files}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_a_finding_names_the_option_or_the_argument(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = "buffer B : L1[3] (size=64)\n"
    path = tmp_path / "p.nem"
    path.write_text(text)
    (found,) = check(text)
    assert (found.help or "").endswith("a `device` directive or `device=`")
    assert "a `device` directive or `--device`" in invoke(capsys, "check", path).out

"""Hints name options at a terminal and arguments in Python."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import nacre
from nacre.base.hints import at_terminal, help_for_reader, setting
from nacre.nem import check
from tests.cli.runner import invoke

SOURCES = Path(nacre.__file__).parent
# A help that names an option outside `setting`: what the library says is read in Python too.
OPTION = re.compile(r"help\w* ?= ?\(?\s*f?[\"'](?:(?!setting)[^\n])*`--[a-z]")


def test_a_setting_is_spelt_for_its_reader() -> None:
    help_ = f"allow more: {setting('`--max-bytes`', '`max_bytes=`')}, or less work"
    assert help_for_reader(help_) == "allow more: `max_bytes=`, or less work"
    with at_terminal():
        assert help_for_reader(help_) == "allow more: `--max-bytes`, or less work"
    assert help_for_reader(None) is None


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

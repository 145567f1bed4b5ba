"""Every case file gets exactly the findings that its comments announce."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from nacre.base.diagnostics import Diagnostic
from tests.conformance.expectations import CASES, Case, Expectation, all_cases


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
def test_a_case_gets_exactly_what_its_comments_say(case: Case) -> None:
    expected, found = case.expectations(), case.check()
    wanted = Counter(expectation.place for expectation in expected)
    got = Counter(case.place_of(diagnostic) for diagnostic in found)
    shown = "\n".join(str(diagnostic) for diagnostic in found)
    assert got == wanted, f"missing {wanted - got}\nunexpected {got - wanted}\nfound:\n{shown}"
    unmatched = _unmatched(case, expected, found)
    assert not unmatched, f"no finding reads like {unmatched}; found:\n{shown}"


def _unmatched(
    case: Case, expected: list[Expectation], found: list[Diagnostic]
) -> list[Expectation]:
    """What no finding of its place describes; each finding serves once."""
    left = list(found)
    unmatched = []
    for expectation in expected:
        here = (d for d in left if case.place_of(d) == expectation.place)
        match = next((d for d in here if expectation.describes(d)), None)
        if match is None:
            unmatched.append(expectation)
        else:
            left.remove(match)
    return unmatched


def test_every_entry_of_the_folder_is_a_case() -> None:
    known = {case.path for case in all_cases()}
    strays = [path.name for path in CASES.iterdir() if path not in known]
    assert strays == []


def test_case_names_say_a_code_and_what_is_shown() -> None:
    pattern = re.compile(r"[A-Z]{3,4}\d{2,3}_\w+")
    assert [c.name for c in all_cases() if not pattern.fullmatch(c.name)] == []


def test_the_runner_notices_what_is_missing_unexpected_or_worded_otherwise(tmp_path: Path) -> None:
    text = "buffer A : L2 (size=0)  # {}\nbuffer B : L2 (size=4)  # {}\n"
    outcomes = []
    for first, second in (
        ("error[BUF01]: has size 0", "fine"),
        ("fine", "fine"),
        ("error[BUF01]: has size 0", "error[BUF01]: has size 0"),
        ("warning[BUF01]: has size 0", "fine"),
        ("error[BUF01]: has size 7", "fine"),
    ):
        path = tmp_path / "BUF01_runner.nem"
        path.write_text(text.format(first, second), encoding="utf-8")
        try:
            test_a_case_gets_exactly_what_its_comments_say(Case(path))
        except AssertionError:
            outcomes.append("fails")
        else:
            outcomes.append("passes")
    assert outcomes == ["passes", "fails", "fails", "fails", "fails"]

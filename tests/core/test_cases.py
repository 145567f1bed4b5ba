"""Every case file gets exactly the findings that its comments announce.

A case is a file `CODE_what_it_shows.core`; a comment `# error[RED01]: part of the message` stands
on the line that it is about. A first line `# profile: nacre-1` chooses the profile.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.core.ops import Profile
from nacre.core.text.printer import print_module
from nacre.core.text.reader import parse
from nacre.core.verify import verify

CASES = Path(__file__).parent / "cases"
_EXPECTED = re.compile(r"# (error|warning|info)\[([A-Z]+\d+)\]:(.*?)(?= # |$)")
_NAME = re.compile(r"[A-Z]{3}\d{2}_\w+")


@dataclass(frozen=True, slots=True)
class Expectation:
    """A finding that must stand on a line; the text is a part of its message."""

    line: int
    severity: str
    code: str
    text: str

    def describes(self, found: Diagnostic) -> bool:
        place = (found.location.line, found.severity, found.code)
        return place == (self.line, self.severity, self.code) and self.text in found.message


@dataclass(frozen=True, slots=True)
class Case:
    path: Path

    @property
    def code(self) -> str:
        return self.path.stem.partition("_")[0]

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def profile(self) -> Profile:
        return "nacre-1" if self.text.startswith("# profile: nacre-1\n") else "core-v1"

    def expectations(self) -> list[Expectation]:
        return [
            Expectation(number, severity, code, text.strip())
            for number, line in enumerate(self.text.split("\n"), 1)
            for severity, code, text in _EXPECTED.findall(line)
        ]

    def findings(self) -> list[Diagnostic]:
        try:
            return verify(parse(self.text, self.path.name), self.profile)
        except InputError as error:
            return list(error.diagnostics)


def all_cases() -> list[Case]:
    return [Case(path) for path in sorted(CASES.glob("*.core"))]


EVERY_CASE = pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.path.stem)


@EVERY_CASE
def test_a_case_gets_exactly_what_its_comments_say(case: Case) -> None:
    left = case.findings()
    shown = "\n".join(map(str, left))
    missing = []
    for expectation in case.expectations():
        match = next((found for found in left if expectation.describes(found)), None)
        if match is None:
            missing.append(expectation)
        else:
            left.remove(match)
    assert not missing, f"no finding reads like {missing}; found:\n{shown}"
    assert not left, f"not announced: {list(map(str, left))}"


@EVERY_CASE
def test_findings_are_the_same_for_the_printed_module(case: Case) -> None:
    try:
        module = parse(case.text)
    except InputError:
        return  # there is nothing to print
    again = parse(print_module(module))
    assert again == module
    found, expected = (verify(m, case.profile) for m in (again, module))
    assert [(d.code, d.message) for d in found] == [(d.code, d.message) for d in expected]


def test_names_say_a_code_and_what_is_shown() -> None:
    strays = [path.name for path in CASES.iterdir() if not _NAME.fullmatch(path.stem)]
    assert strays == []
    assert [path.name for path in CASES.iterdir() if path.suffix != ".core"] == []


def test_a_case_expects_its_own_code_or_shows_a_behaviour() -> None:
    from nacre.base.rules import RULES
    from nacre.core import catalogue

    catalogue.load()
    codes = Counter((c.code, e.code) for c in all_cases() for e in c.expectations())
    shown = {case.code for case in all_cases()}
    assert sorted(shown - set(RULES)) == []
    emitted = {code for code in shown if not RULES[code].behaviour}
    assert sorted(code for code in emitted if (code, code) not in codes) == []


def test_the_runner_notices_what_is_missing_unexpected_or_worded_otherwise(tmp_path: Path) -> None:
    line = '%0 = Input () {{name="x"}} : tensor<f32[0]>  # {}\noutputs: %0\n'
    outcomes = []
    for comment in ("error[MOD12]: is 0", "fine", "warning[MOD12]: is 0", "error[MOD12]: is 7"):
        path = tmp_path / "MOD12_runner.core"
        path.write_text(line.format(comment), encoding="utf-8")
        try:
            test_a_case_gets_exactly_what_its_comments_say(Case(path))
        except AssertionError:
            outcomes.append("fails")
        else:
            outcomes.append("passes")
    assert outcomes == ["passes", "fails", "fails", "fails"]

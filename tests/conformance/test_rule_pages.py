"""Every rule has a page whose examples are true, and a case that proves it."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from nacre.base.diagnostics import Diagnostic
from nacre.base.rules import RULES, Rule
from nacre.base.source import Source
from nacre.nem.api import NemInterpreter
from nacre.nem.checks import catalogue
from nacre.nem.checks.engine import CheckOptions, check_source
from tests.conformance.expectations import all_cases

TESTS = Path(__file__).parent.parent

# A page shows one file; these rules need more than that, and cases show them instead.
WITHOUT_EXAMPLE = {
    **{f"BYT0{number}": "needs a file that is not text" for number in range(1, 10)},
    "DOC25": "needs a thousand mistakes",
    "DOC20": "the smallest example is longer than a page",
    "DVD04": "needs an option",
    "INC01": "needs two files",
    "INC03": "needs two files",
    "INC05": "needs two files",
    "INC06": "needs two files",
    "INC08": "needs a file outside the root",
    "INC09": "needs a thousand files",
    "QNT18": "needs two files",
    "TYP22": "needs two files",
    "BUF11": "needs a host that imports",
    "BUF12": "needs a host that imports",
    "HAZ08": "needs a host that imports",
    "RUN04": "needs a backend of one's own",
    "LEX09": "needs a file of 64 MiB",
    "LEX10": "needs a file that is not text",
    "LEX11": "needs a file that cannot be read",
    "RUN03": "needs a bias that the host gives",
    "RUN05": "needs a host that asks",
    "RUN06": "needs a memory larger than this machine's",
    "RUN07": "needs a race, which a check refuses",
    "RUN08": "needs an order",
    "RUN09": "needs a backend",
    "RUN10": "needs a timed run",
    "RUN11": "needs a profile",
    "RUN12": "needs an error that was allowed through",
}

catalogue.load()
CODES = sorted(code for code, rule in RULES.items() if rule.language == "NEM")


def examples(rule: Rule, heading: str) -> list[str]:
    """The indented blocks of a page that follow a line `Bad:`, `Good:` or `Bad run:`."""
    found: list[str] = []
    block: list[str] | None = None
    for line in [*rule.page.splitlines(), "."]:
        if block is not None and line and not line.startswith("    "):
            found.append(textwrap.dedent("\n".join(block)).strip() + "\n")
            block = None
        if block is not None:
            block.append(line)
        elif line == f"{heading}:":
            block = []
    return found


EXAMPLES = [
    pytest.param(code, heading, text, id=f"{code}-{heading}-{number}")
    for code in CODES
    for heading in ("Bad", "Good")
    for number, text in enumerate(examples(RULES[code], heading), 1)
]


RUNS = [
    pytest.param(code, text, id=f"{code}-{number}")
    for code in CODES
    for number, text in enumerate(examples(RULES[code], "Bad run"), 1)
]


def findings(code: str, text: str) -> list[Diagnostic]:
    options = CheckOptions(strict=RULES[code].strict_only)
    return list(check_source(Source(f"{code}.nem", text), options).diagnostics)


@pytest.mark.parametrize(("code", "heading", "text"), EXAMPLES)
def test_the_examples_of_a_page_are_true(code: str, heading: str, text: str) -> None:
    found = findings(code, text)
    codes = {d.code for d in found}
    if heading == "Bad":
        assert code in codes
        assert {d.code for d in found if d.severity == "error"} <= {code}
    else:
        assert [str(d) for d in found if d.severity != "info"] == []
        assert code not in codes


@pytest.mark.parametrize(("code", "text"), RUNS)
def test_the_bad_run_of_a_page_brings_up_its_code(code: str, text: str) -> None:
    assert [str(d) for d in findings(code, text) if d.severity == "error"] == []

    interp = NemInterpreter()
    found = interp.run(interp.load_string(text)).diagnostics

    assert code in {d.code for d in found}
    assert {d.code for d in found if d.severity == "error"} <= {code}


@pytest.mark.parametrize("code", CODES)
def test_a_page_begins_with_a_summary(code: str) -> None:
    summary = RULES[code].summary
    assert summary
    assert summary[0].isupper() or summary[0] in "`@"
    assert not summary.startswith(("Bad", "Good"))
    assert summary.rstrip(")").endswith((".", "!"))


@pytest.mark.parametrize("code", CODES)
def test_a_page_shows_both_sides_or_says_why_not(code: str) -> None:
    rule = RULES[code]
    bad, good = examples(rule, "Bad"), examples(rule, "Good")
    runs = examples(rule, "Bad run")
    if rule.behaviour or code in WITHOUT_EXAMPLE:
        assert not bad, f"{code} has an example; take it out of the list"
        assert not runs, f"{code} has an example; take it out of the list"
    elif runs:
        assert not bad, f"{code} is found by a check: write `Bad:`"
    else:
        assert bad, f"{code} has no `Bad:` example"
        assert good, f"{code} has no `Good:` example"


def test_the_list_of_pages_without_example_names_rules() -> None:
    assert [code for code in WITHOUT_EXAMPLE if code not in RULES] == []


def _functions() -> set[str]:
    """The codes of test functions: LEX09 of `test_lex09_...`."""
    definition = re.compile(r"^ *def test_([a-z]{3,4}\d{2,3})_", re.MULTILINE)
    groups = {rule.group for rule in RULES.values()}
    codes = {
        code.upper()
        for path in TESTS.rglob("test_*.py")
        for code in definition.findall(path.read_text(encoding="utf-8"))
    }
    return {code for code in codes if code.rstrip("0123456789") in groups}


FUNCTIONS = _functions()
EXPECTED = {
    (case.code, expectation.code) for case in all_cases() for expectation in case.expectations()
}
NAMED = {case.code for case in all_cases()}


@pytest.mark.parametrize("code", CODES)
def test_a_rule_has_a_case(code: str) -> None:
    """A file or folder that expects the code, or a test function; a behaviour rule may be clean."""
    shown = (code, code) in EXPECTED or (RULES[code].behaviour and code in NAMED)
    assert shown or code in FUNCTIONS, f"add a case {code}_what_it_shows.nem"


def test_every_case_names_a_rule() -> None:
    assert sorted(NAMED - set(RULES)) == []
    assert sorted(FUNCTIONS - set(RULES)) == []


def test_nothing_is_expected_that_is_no_rule() -> None:
    assert sorted(code for _, code in EXPECTED if code not in RULES) == []

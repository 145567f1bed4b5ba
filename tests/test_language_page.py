"""docs/language.md is whole and true: its wrong programs are wrong, rules lead to its sections."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nacre import nem
from nacre.base.rules import RULES
from nacre.nem.checks import catalogue
from nacre.nem.spec.decorators import DECORATORS
from nacre.nem.spec.language_sections import section_of
from nacre.nem.spec.opcodes import OPCODES
from tests.conformance.expectations import Case
from tests.test_examples import anchors

PAGE = Path(__file__).parent.parent / "docs/language.md"
TEXT = PAGE.read_text(encoding="utf-8")
WRONG = re.findall(r"^```nem wrong\n(.*?)^```$", TEXT, re.M | re.S)

catalogue.load()
CODES = sorted(code for code, rule in RULES.items() if rule.language == "NEM")


@pytest.mark.parametrize("text", WRONG, ids=[t.strip().splitlines()[0] for t in WRONG])
def test_a_wrong_program_gets_the_codes_of_its_comments(text: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.nem"
    path.write_text(text, encoding="utf-8")
    case = Case(path)
    expected, found = case.expectations(), case.check()
    assert expected
    assert sorted(e.place for e in expected) == sorted(case.place_of(d) for d in found)
    assert all(any(e.describes(d) for d in found) for e in expected), [str(d) for d in found]


def test_every_code_of_the_page_is_a_rule() -> None:
    named = set(re.findall(r"\b([A-Z]{3}\d\d)\b", TEXT))
    assert len(named) > 100
    assert named - RULES.keys() == set()


def test_every_opcode_and_decorator_stands_in_the_page() -> None:
    assert [name for name in OPCODES if f"`{name}`" not in TEXT] == []
    assert [name for name in DECORATORS if f"`@{name}" not in TEXT] == []


@pytest.mark.parametrize("code", CODES)
def test_a_rule_leads_to_a_section_of_the_page(code: str) -> None:
    section = section_of(RULES[code])
    assert section in anchors(PAGE)


def test_rules_of_other_languages_lead_nowhere() -> None:
    others = [rule for rule in RULES.values() if rule.language != "NEM"]
    assert [rule.code for rule in others if section_of(rule) is not None] == []


def test_the_limit_of_operations_is_one_of_loop_variables() -> None:
    """What is known before the program runs is a number, however long it was."""
    sums = " + ".join(["{0}"] * 300)
    lets = [f"let l{n} = {f'l{n - 1} + ' if n else ''}{sums}" for n in range(6)]
    known, open_ = ("\n".join(line.format(x) for line in lets) for x in ("1", "i"))
    assert nem.check(known + "\n") == []
    found = nem.check(f"loop i in [0..3]:\n{open_}\nendloop\n")
    assert {finding.code for finding in found} == {"DOC20"}

"""Every code of plans is declared once, has a page, and some test shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from nacre.base.rules import RULES
from nacre.nac import catalogue

catalogue.load()
PLAN_RULES = {code: rule for code, rule in RULES.items() if rule.name.startswith("plan-")}


def test_every_code_is_shown() -> None:
    assert sorted(PLAN_RULES) == [f"NAC{number}" for number in range(80, 80 + len(PLAN_RULES))]
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert [code for code in PLAN_RULES if f'"{code}"' not in tests] == []


@pytest.mark.parametrize("code", sorted(PLAN_RULES))
def test_a_page_is_a_sentence_and_names_its_clause(code: str) -> None:
    rule = PLAN_RULES[code]
    assert rule.spec.startswith("NAC / ")
    assert rule.summary.endswith(".")
    assert rule.summary[0].isupper()

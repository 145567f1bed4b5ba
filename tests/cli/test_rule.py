from __future__ import annotations

import importlib
import json

import pytest

from nacre.base.rules import RULES
from nacre.cli.rule import RULE_MODULES
from nacre.core import catalogue as core_catalogue
from nacre.llm import catalogue as llm_catalogue
from nacre.nac import catalogue as nac_catalogue
from nacre.nem.checks import catalogue
from nacre.nem.spec.language_sections import address_of
from nacre.tcb import catalogue as tcb_catalogue
from tests.cli.runner import invoke, nacre, nacre_here

Capsys = pytest.CaptureFixture[str]

catalogue.load()
core_catalogue.load()
llm_catalogue.load()
nac_catalogue.load()
tcb_catalogue.load()
for module in RULE_MODULES:
    importlib.import_module(module)

# NEM first, then the others.
LISTED = sorted(RULES, key=lambda code: (RULES[code].language != "NEM", code))


def test_without_a_code_all_rules_are_listed() -> None:
    outcome = nacre("rule")
    assert (outcome.status, outcome.err) == (0, "")
    rows = [line.split() for line in outcome.out.splitlines()]
    assert [row[0] for row in rows] == LISTED
    for code, standing, name in rows:
        rule = RULES[code]
        assert (standing, name) == ("behaviour" if rule.behaviour else rule.severity, rule.name)


@pytest.mark.parametrize("code", ["BUF01", "buf01", "Buf01"])
def test_a_code_shows_its_page(capsys: Capsys, code: str) -> None:
    outcome = invoke(capsys, "rule", code)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == (
        "BUF01 buffer-size-not-positive (error)\n"
        "spec: Core Program Objects / Buffers\n"
        "language: docs/language.md#buffers\n"
        "\n"
        "A buffer's size is zero or negative.\n"
        "\n"
        "Bad:\n"
        "\n"
        "    buffer B : L2 (size=0)\n"
        "\n"
        "Good:\n"
        "\n"
        "    buffer B : L2 (size=64)\n"
    )


@pytest.mark.sampled(8)
@pytest.mark.parametrize("code", sorted(RULES))
def test_every_rule_can_be_explained(capsys: Capsys, code: str) -> None:
    outcome = invoke(capsys, "rule", code)
    rule = RULES[code]
    assert outcome.status == 0
    assert outcome.out.startswith(f"{code} {rule.name} (")
    assert outcome.out.endswith(f"{rule.page}\n")


def test_a_group_lists_its_rules(capsys: Capsys) -> None:
    outcome = invoke(capsys, "rule", "inh")
    assert [line.split()[0] for line in outcome.out.splitlines()] == [
        f"INH{number:02}" for number in range(1, 12)
    ]


def test_rules_are_given_as_json(capsys: Capsys) -> None:
    listed = json.loads(invoke(capsys, "rule", "--format", "json").out)
    assert [row["code"] for row in listed] == LISTED
    always = {"code", "name", "severity", "spec", "page"}
    assert all(row.keys() - {"fix", "language"} == always for row in listed)
    assert all(row.get("language") == address_of(RULES[row["code"]]) for row in listed)
    assert {row["code"] for row in listed if row.get("fix")} == {
        code for code, rule in RULES.items() if rule.fix
    }
    (single,) = json.loads(invoke(capsys, "rule", "DEV04", "--format", "json").out)
    assert (single["severity"], single["page"]) == ("warning", RULES["DEV04"].page)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("BUF0", "no rule BUF0; did you mean `BUF01`?"),
        ("BFU01", "no rule BFU01; did you mean `BUF01`?"),
        ("frobnicate", "no rule frobnicate\n"),
    ],
)
def test_an_unknown_rule_is_wrong_usage(code: str, message: str) -> None:
    outcome = nacre_here("rule", code)
    assert (outcome.status, outcome.out) == (2, "")
    assert message in outcome.err

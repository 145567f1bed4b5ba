from __future__ import annotations

from collections.abc import Iterator

import pytest

from nacre.base import rules
from nacre.base.diagnostics import Diagnostic, InternalError, Related
from nacre.base.rules import RULES, Rule, declare, rule
from nacre.base.source import Source

SOURCE = Source("f", "abc def")


@pytest.fixture(autouse=True)
def _registry_as_it_was() -> Iterator[None]:
    """Rules that a test declares are gone after it."""
    before = dict(rules._REGISTERED)
    yield
    rules._REGISTERED.clear()
    rules._REGISTERED.update(before)


def test_a_declared_rule_is_in_the_registry_with_its_page_dedented() -> None:
    made = declare(
        "ZZZ01",
        "some-name",
        "Some clause",
        """
        The first
        paragraph.

        Bad:

            x
        """,
    )
    assert RULES["ZZZ01"] is made
    assert made.page == "The first\nparagraph.\n\nBad:\n\n    x"
    assert made.summary == "The first paragraph."
    assert (made.group, made.severity, made.behaviour, made.strict_only) == (
        "ZZZ", "error", False, False,
    )  # fmt: skip


def test_an_example_that_is_marked_as_a_diff_is_shown_as_two_programs() -> None:
    made = declare(
        "ZZZ01",
        "some-name",
        "Some clause",
        """
        A sentence.

        Bad (-) and good (+):

              a {
            -     b = -1
            +     b = 1

              }

        A word more.
        """,
    )
    bad, good = "    a {\n        b = -1\n\n    }", "    a {\n        b = 1\n\n    }"
    assert made.page == f"A sentence.\n\nBad:\n\n{bad}\n\nGood:\n\n{good}\n\nA word more."


def test_a_rule_makes_diagnostics_with_its_code_and_severity() -> None:
    made = declare("ZZZ01", "n", "s", "page", severity="warning")
    related = (Related(SOURCE.span(4, 7), "declared here"),)
    span = SOURCE.span(0, 3)
    diagnostic = made.at(span, "message", related=related, help="do so")
    assert diagnostic == Diagnostic("ZZZ01", "warning", "message", span, related, "do so")


def test_a_decorated_function_becomes_a_check_with_its_docstring_as_page() -> None:
    @rule("ZZZ02", "no-x", "Clause", severity="info")
    def no_x(text: str) -> Iterator[Diagnostic]:
        """There is an x.

        Take it out.
        """
        if "x" in text:
            yield no_x.at(SOURCE.span(0, 1), f"x in {text}")

    assert RULES["ZZZ02"] is no_x
    assert no_x.page == "There is an x.\n\nTake it out."
    assert [(d.code, d.severity, d.message) for d in no_x("axe")] == [("ZZZ02", "info", "x in axe")]
    assert list(no_x("abc")) == []


def test_a_code_cannot_be_declared_twice() -> None:
    first = declare("ZZZ01", "n", "s", "page")
    with pytest.raises(InternalError, match="rule ZZZ01 is declared twice"):
        declare("ZZZ01", "other", "s", "page")
    assert RULES["ZZZ01"] is first


@pytest.mark.parametrize(
    "code", ["", "ZZ01", "ZZZZZ01", "ZZZ1", "ZZZ0001", "zzz01", "ZZZ01 ", "Z-Z01"]
)
def test_a_code_must_look_like_one(code: str) -> None:
    with pytest.raises(InternalError, match="does not look like a rule code"):
        declare(code, "n", "s", "page")
    assert code not in RULES


@pytest.mark.parametrize("page", ["", "   \n  "])
def test_a_rule_needs_a_page(page: str) -> None:
    with pytest.raises(InternalError, match="rule ZZZ01 has no page"):
        declare("ZZZ01", "n", "s", page)
    assert "ZZZ01" not in RULES


def test_a_check_needs_a_docstring() -> None:
    def silent(facts: str) -> Iterator[Diagnostic]:
        yield from ()

    with pytest.raises(InternalError, match="rule ZZZ03 has no page"):
        rule("ZZZ03", "n", "s")(silent)


def test_a_behaviour_is_a_promise_that_no_diagnostic_carries() -> None:
    promise = declare("ZZZ01", "n", "s", "page", behaviour=True)
    with pytest.raises(InternalError, match="ZZZ01 describes behaviour"):
        promise.at(SOURCE.span(0, 1), "message")


def test_the_registry_cannot_be_written_from_outside() -> None:
    with pytest.raises(TypeError):
        RULES["ZZZ01"] = Rule("ZZZ01", "n", "error", "s", "p")  # type: ignore[index]

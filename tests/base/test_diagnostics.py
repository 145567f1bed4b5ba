from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.diagnostics import (
    Diagnostic,
    InputError,
    Related,
    Severity,
    has_errors,
    in_order,
    warnings_as_errors,
)
from nacre.base.source import Location, Source

FIRST, SECOND = Source("first", "0123456789"), Source("second", "0123456789")


def found(source: Source, start: int, end: int, code: str = "AAA01") -> Diagnostic:
    return Diagnostic(code, "error", "m", source.span(start, end))


def with_severity(severity: Severity) -> Diagnostic:
    return Diagnostic("AAA01", severity, "m", FIRST.span(0, 1))


DIAGNOSTICS = st.builds(
    lambda source, start, length, code: found(source, start, min(10, start + length), code),
    st.sampled_from([FIRST, SECOND]),
    st.integers(0, 9),
    st.integers(0, 3),
    st.sampled_from(["AAA01", "BBB01"]),
)


def test_a_diagnostic_says_where_what_and_how_bad() -> None:
    source = Source("a.nem", "one\ntwo")
    diagnostic = Diagnostic("DOC19", "warning", "expected `:`", source.span(4, 7))
    assert str(diagnostic) == "a.nem:2:1: warning[DOC19]: expected `:`"
    assert diagnostic.location == Location("a.nem", 2, 1, 2, 4)
    assert Related(source.span(0, 3), "here").location == Location("a.nem", 1, 1, 1, 4)


def test_files_come_in_the_order_of_their_first_mention_and_places_ascend() -> None:
    late, early = found(SECOND, 5, 6), found(SECOND, 1, 2)
    other = found(FIRST, 0, 1)
    assert in_order([late, other, early]) == [early, late, other]


def test_at_one_place_the_shorter_comes_first_then_the_code_decides() -> None:
    long, short = found(FIRST, 1, 4), found(FIRST, 1, 2)
    later_code = found(FIRST, 1, 2, "BBB01")
    assert in_order([long, later_code, short]) == [short, later_code, long]


@given(st.lists(DIAGNOSTICS, max_size=12))
def test_order_drops_repetitions_and_nothing_else(diagnostics: list[Diagnostic]) -> None:
    ordered = in_order(diagnostics)
    assert set(ordered) == set(diagnostics)
    assert len(ordered) == len(set(diagnostics))
    assert in_order(ordered) == ordered


@given(st.lists(DIAGNOSTICS.filter(lambda d: d.span.source is FIRST), max_size=8), st.randoms())
def test_within_a_file_the_order_does_not_depend_on_who_spoke_first(
    diagnostics: list[Diagnostic], random: Random
) -> None:
    shuffled = list(diagnostics)
    random.shuffle(shuffled)
    assert in_order(shuffled) == in_order(diagnostics)


@pytest.mark.parametrize(
    ("severities", "expected"),
    [([], False), (["warning", "info"], False), (["info", "error"], True)],
)
def test_only_errors_are_errors(severities: list[Severity], expected: bool) -> None:
    assert has_errors([with_severity(s) for s in severities]) is expected


def test_strictness_raises_warnings_and_leaves_the_rest() -> None:
    raised = warnings_as_errors([with_severity(s) for s in ("error", "warning", "info")])
    assert [d.severity for d in raised] == ["error", "error", "info"]
    assert [d.message for d in raised] == ["m", "m", "m"]


def test_an_input_error_carries_its_diagnostics_and_shows_them() -> None:
    error = InputError([found(FIRST, 0, 1), found(SECOND, 2, 3)])
    assert [d.span.start for d in error.diagnostics] == [0, 2]
    assert str(error) == "first:1:1: error[AAA01]: m\nsecond:1:3: error[AAA01]: m"

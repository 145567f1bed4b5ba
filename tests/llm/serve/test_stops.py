"""Stops are found across pieces, and no part of one is shown."""

from __future__ import annotations

import pytest

from nacre.llm.serve.stops import StopTexts


@pytest.mark.parametrize(
    ("stops", "pieces", "shown", "is_found"),
    [
        ((), ["ab", "c"], "abc", False),
        (("b",), ["ab", "c"], "a", True),
        (("bc",), ["ab", "c"], "a", True),
        (("bcd",), ["ab", "c", "x"], "abcx", False),
        (("bcd",), ["abc"], "abc", False),
        (("aab",), ["a", "a", "a", "b"], "a", True),
        (("xyz", "b"), ["a", "b", "xyz"], "a", True),
        (("c", "b"), ["abc"], "a", True),
    ],
)
def test_a_text_is_cut_before_the_first_stop(
    stops: tuple[str, ...], pieces: list[str], shown: str, is_found: bool
) -> None:
    found = StopTexts(stops)
    assert "".join(found.before_stop(pieces)) == shown
    assert found.is_found == is_found


def test_what_begins_no_stop_is_shown_at_once() -> None:
    pieces = StopTexts(("END",)).before_stop(iter(["a", "E", "x"]))
    assert [next(pieces), next(pieces)] == ["a", "Ex"]

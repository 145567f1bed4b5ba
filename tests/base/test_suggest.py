from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.suggest import Suggestions, did_you_mean, edit_distance, nearest

WORDS = st.text("abc", max_size=7)


def distance_by_definition(a: str, b: str) -> int:
    """Insert, delete, replace or swap neighbours, straight from the definition."""

    @cache
    def of(i: int, j: int) -> int:
        if i == 0 or j == 0:
            return i + j
        options = [of(i - 1, j) + 1, of(i, j - 1) + 1, of(i - 1, j - 1) + (a[i - 1] != b[j - 1])]
        if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
            options.append(of(i - 2, j - 2) + 1)
        return min(options)

    return of(len(a), len(b))


@given(WORDS, WORDS, st.integers(0, 8))
def test_the_distance_is_that_of_the_definition_up_to_the_limit(a: str, b: str, limit: int) -> None:
    assert edit_distance(a, b, limit) == min(distance_by_definition(a, b), limit + 1)


@given(WORDS, WORDS)
def test_the_distance_is_the_same_both_ways(a: str, b: str) -> None:
    assert edit_distance(a, b, 10) == edit_distance(b, a, 10)


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("rellu", ["relu", "gelu", "tanh"], "relu"),
        ("geul", ["relu", "gelu"], "gelu"),
        ("buffr", ["buffer", "loop"], "buffer"),
        ("NHWC", ["nhwc", "NCHW"], "nhwc"),
        ("xyz", ["relu", "gelu"], None),
        ("relu", [], None),
        ("conv2", ["conv1d", "conv2d", "conv3d"], "conv2d"),
        ("b", ["a", "c"], "a"),
    ],
)
def test_the_nearest_name_wins(name: str, known: list[str], expected: str | None) -> None:
    assert nearest(name, known) == expected


@given(st.text("abc", min_size=1, max_size=6), st.lists(WORDS, max_size=6))
def test_no_known_name_is_nearer_than_the_one_found(name: str, known: list[str]) -> None:
    found = nearest(name, known)
    limit = max(1, len(name) // 3)
    distances = [distance_by_definition(name, other) for other in known]
    if found is None:
        assert all(distance > limit for distance in distances)
    else:
        assert found in known
        assert distance_by_definition(name, found) == min(distances) <= limit


def test_the_choice_does_not_depend_on_the_order_of_the_names() -> None:
    assert nearest("ab", ["ac", "aa"]) == nearest("ab", ["aa", "ac"]) == "aa"


def test_a_very_long_name_gets_no_suggestion() -> None:
    assert nearest("x" * 65, ["x" * 65]) is None


def test_the_help_line_names_the_nearest() -> None:
    assert did_you_mean("transfr", ["transfer", "store"]) == "did you mean `transfer`?"
    assert did_you_mean("q", ["transfer", "store"]) is None


def test_of_very_many_names_one_that_begins_alike_is_found() -> None:
    known = [f"layer_{number:06}" for number in range(50_000)] + ["output_weight"]
    assert nearest("output_wieght", known) == "output_weight"


def test_the_first_mistakes_of_a_list_get_a_hint_and_the_rest_none() -> None:
    hints = Suggestions(["alpha", "beta"])
    found = [hints.help("alpah") for _ in range(20)]
    assert found[:8] == ["did you mean `alpha`?"] * 8
    assert found[8:] == [None] * 12
    assert Suggestions(["alpha"]).suffix("alpah") == "; did you mean `alpha`?"
    assert Suggestions(["alpha"]).suffix("q") == ""

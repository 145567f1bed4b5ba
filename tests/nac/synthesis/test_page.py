"""The axes of the page about a search: numbers that are round, differ, and stand apart."""

from __future__ import annotations

import itertools
import re
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.nac.synthesis.axes import round_logarithmic, round_numbers
from nacre.nac.synthesis.derivation import Derivation
from nacre.nac.synthesis.families import families_corpus
from nacre.nac.synthesis.page import About, search_page
from nacre.nac.synthesis.search import Candidate, Score, SearchResult
from nacre.nac.synthesis.synthesise import derive_all, request_of

LETTER = 6  # pixels, at least, of 12 px sans-serif digits
_TEXT = re.compile(r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="(end|middle)">([\d.,]+%?)<')
_POINT = re.compile(r'<circle class="drawn[^"]*" cx="([\d.]+)" cy="([\d.]+)"')


@cache
def _network() -> Derivation:
    grammar = families_corpus().grammar
    (one,) = derive_all(grammar, request_of(grammar, (1, 1, 8, 8), 2000, None), 1, 0)
    return one


def _page(rows: list[tuple[float, int]]) -> str:
    found = [
        Candidate(_network(), Score(1 - accuracy, cycles), "drawn", at)
        for at, (accuracy, cycles) in enumerate(rows)
    ]
    result = SearchResult(tuple(found), len(found))
    page = search_page(result, About("digits", "npm4k", 40, result.reference(10)))
    return page.partition("</svg>")[0]


def _require_readable(page: str) -> None:
    rows = [(float(x), float(y), side, text) for x, y, side, text in _TEXT.findall(page)]
    shares = [(y, text) for _, y, side, text in rows if side == "end"]
    cycles = [(x, text) for x, _, side, text in rows if side == "middle"]
    assert len(shares) >= 3
    assert len(cycles) >= 1
    for texts in (shares, cycles):
        assert len({text for _, text in texts}) == len(texts)
    heights = sorted(y for y, _ in shares)
    assert all(after - before >= 14 for before, after in itertools.pairwise(heights))
    for (before, first), (after, second) in itertools.pairwise(cycles):
        assert after - before >= LETTER * (len(first) + len(second)) / 2
    points = _POINT.findall(page)
    assert points
    assert all(0 <= float(x) <= 760 and 0 <= float(y) <= 420 for x, y in points)


@pytest.mark.parametrize(
    "rows",
    [
        [(0.9631 + at / 1000, 166_000 + 37 * at) for at in range(12)],
        [(0.17777, 166)],
        [(1.0, 1)],
        [(0.0, 1)],
        [(0.08 * at, 3 * 10**at) for at in range(12)],
        [(0.5, 999_999), (0.5001, 1_000_001)],
    ],
    ids=["narrow", "one", "all right", "all wrong", "twelve decades", "around a power"],
)
def test_numbers_at_the_axes_differ_and_stand_apart(rows: list[tuple[float, int]]) -> None:
    _require_readable(_page(rows))


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 10**12)), min_size=1, max_size=6))
def test_so_do_those_of_any_search(rows: list[tuple[float, int]]) -> None:
    _require_readable(_page(rows))


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(2, 20))
def test_round_numbers_lie_within_and_are_few(low: float, span: float, most: int) -> None:
    found = round_numbers(low, low + span, most)
    assert len(found) <= most + 1
    assert all(low - span * 1e-6 <= n <= low + span * (1 + 1e-6) for n in found)
    assert found == sorted(set(found))


@given(st.floats(1, 1e12), st.floats(1.05, 1e9), st.integers(4, 20))
def test_round_logarithmic_numbers_are_within_and_few(low: float, by: float, most: int) -> None:
    found = round_logarithmic(low, low * by, most)
    assert len(found) <= most + 1
    assert all(low <= n + 1e-6 * n and n <= low * by * (1 + 1e-6) for n in found)
    assert found == sorted(set(found))

"""Patterns as the library's engine reads them: the same matches, or refused."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.nac.tisa.budget import Budget, BudgetError
from nacre.nac.tisa.patterns.nodes import PatternError
from nacre.nac.tisa.patterns.reading import parse_pattern
from nacre.nac.tisa.patterns.scanner import Scanner
from nacre.nac.tisa.patterns.writing import pattern_text
from tests.nac.tisa.made import Regex, pre_tokenizers
from tests.nac.tisa.patterns.drawn_patterns import drawn_class, drawn_pattern

# Letters with several forms, small digits, ends of lines, signs, and ligatures of two letters.
LETTERS = (
    "abksSTKfiABl'19 -_.\n\r\t\0\u00e9\u00df\u017f\u212a\u00b2\u4e2d\ufb00\ufb01\ufb06\u00bc\u0345"
    "\u03a3\u03c3\u03c2\u01c5\u2028\x85\u03b1\u0414\u2160\u2170\u24b6\u2460\U0001f600$+\u00a3]&"
)
Matches = list[tuple[int, int]]


def _expected(pattern: str, text: str) -> Matches | None:
    """What the library takes apart; None where it gives up."""
    try:
        kept = pre_tokenizers.Split(Regex(pattern), "removed").pre_tokenize_str(text)
        parts = pre_tokenizers.Split(Regex(pattern), "isolated").pre_tokenize_str(text)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return None
    gaps = {place for _, place in kept}
    return [place for _, place in parts if place not in gaps]


def _scanner(pattern: str) -> Scanner | None:
    """What runs a pattern as it is written into programs; None where it is refused."""
    try:
        return Scanner([parse_pattern(pattern_text(parse_pattern(pattern, "hub")))])
    except PatternError:
        return None


def _require_same(pattern: str, texts: list[str]) -> None:
    scanner = _scanner(pattern)
    for text in texts if scanner else ():
        expected = _expected(pattern, text)
        assert scanner is not None
        try:
            found = [(start, end) for start, end, _ in scanner.matches(text, Budget(len(text)))]
        except BudgetError:
            return
        assert expected is None or found == expected, ascii((pattern, text))


def _texts(draw: random.Random) -> list[str]:
    some = ["".join(draw.choices(LETTERS, k=size)) for size in (3, 10, 60)]
    return [*some, LETTERS, "".join(map(chr, range(0x20, 0x3000, 7)))]


@given(seed=st.integers(0, 2**32))
def test_any_pattern_is_the_same_or_refused(seed: int) -> None:
    draw = random.Random(seed)
    pattern = drawn_pattern(draw) if draw.random() < 0.7 else drawn_class(draw)
    _require_same(pattern, _texts(draw))


@pytest.mark.full
@pytest.mark.parametrize("seed", range(20))
def test_two_thousand_patterns(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(100):
        _require_same(drawn_pattern(draw), _texts(draw))


TAKEN = (
    r"(?i)[a-z]+", r"\bthe\b", r"^\s+", r"\R+", r"[[:alpha:]]+|[[:digit:]]",
    r"\p{Uppercase Letter}",
    r"[\w]+", r"a{,2}b", r"\h{2}", r"[[:^space:]]+", r"\x{1F600}", r"(?i)it's", r"[\p{L}&&[^a]]+",
)  # fmt: skip


@pytest.mark.parametrize("pattern", TAKEN)
def test_what_users_write_is_taken(pattern: str) -> None:
    assert _scanner(pattern) is not None
    text = "The the bathe\n  IT'\u017f aab \r\n\n \U0001f600 1\u00b2 f0 \u00c9a"
    _require_same(pattern, [text, *_texts(random.Random(1))])


REFUSED = (
    r"\X", r"(?>ab|a)c", r"(?<=ab)c", r"(a)\1", r"\p{Emoji}", r"\p{Script=Han}", r"[[:foo:]]",
    r"\U00000041", r"\xe9", r"\012", r"a{2}?b", r"a(?i)b", r"(?m).", r"\Z", r"\Ka", r"\Ga", r"\pL",
    r"(?i)\u00e9", r"(?i)(?:s)s", r"(?i)[\p{Lu}]", r"(?i)[[:upper:]]", r"(?<n>a)", r"\b+a",
    "(?~a)b", r"(?i)[\w]", r"(?i)[\S]", "(?i)[[^a]]", "(?i)[a-z&&[^A]]", "[^[^a]]", r"(?i)[\H]",
)  # fmt: skip


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        Scanner([parse_pattern(pattern, "hub")])

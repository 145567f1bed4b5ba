"""Patterns against Python's own engine, and in steps that grow with the text alone."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.nac.tisa.budget import Budget, BudgetError
from nacre.nac.tisa.hub.pre_tokenizers import GPT2
from nacre.nac.tisa.patterns.network import is_nullable
from nacre.nac.tisa.patterns.nodes import (
    AdjacentCharacter,
    Chars,
    Choice,
    Node,
    PatternError,
    Repeat,
    Sequence,
    quote,
)
from nacre.nac.tisa.patterns.reading import parse_pattern
from nacre.nac.tisa.patterns.scanner import Scanner
from nacre.nac.tisa.patterns.writing import pattern_text

LETTERS = st.builds(
    lambda points, negated: Chars(tuple((p, p) for p in sorted(points)), negated=negated),
    st.sets(st.sampled_from([97, 98, 99]), min_size=1, max_size=2),
    st.booleans(),
)


def _larger(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    solid = inner.filter(lambda node: not is_nullable(node))
    return st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: Sequence(tuple(parts))),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: Choice(tuple(parts))),
        st.builds(Repeat, solid, st.integers(0, 2), st.none(), st.booleans()),
        st.builds(
            lambda part, least, more, greedy: Repeat(part, least, least + more, greedy),
            solid, st.integers(0, 2), st.integers(1, 2), st.booleans(),
        ),
    )  # fmt: skip


NEAR = st.builds(AdjacentCharacter, st.booleans(), st.booleans(), LETTERS)
TREES: st.SearchStrategy[Node] = st.recursive(LETTERS | NEAR, _larger, max_leaves=6)


def _found(trees: list[Node], text: str) -> list[tuple[int, int, int]]:
    return list(Scanner(trees).matches(text, Budget(len(text))))


def _expected(patterns: list[str], text: str) -> list[tuple[int, int, int]]:
    joined = re.compile("|".join(f"({pattern})" for pattern in patterns), re.DOTALL)
    return [(m.start(), m.end(), (m.lastindex or 0) - 1) for m in joined.finditer(text)]


@given(
    trees=st.lists(TREES.filter(lambda tree: not is_nullable(tree)), min_size=1, max_size=3),
    text=st.text("abcd", max_size=30),
)
def test_matches_are_those_of_a_backtracking_engine(trees: list[Node], text: str) -> None:
    patterns = [pattern_text(tree) for tree in trees]
    assert _found(trees, text) == _expected(patterns, text)


@given(TREES)
def test_a_tree_survives_its_text(tree: Node) -> None:
    text = pattern_text(tree)
    assert pattern_text(parse_pattern(text)) == text


@given(st.text())
def test_a_quoted_text_matches_itself(text: str) -> None:
    if text:
        assert _found([parse_pattern(quote(text))], text) == [(0, len(text), 0)]


@given(st.text(st.sampled_from("ab[]{}()\\|*+?^$.,-pPsdwzAux0123456789<!=:i&"), max_size=20))
def test_any_text_is_a_pattern_or_refused(source: str) -> None:
    try:
        tree = parse_pattern(source)
        Scanner([tree])
    except PatternError:
        return
    assert pattern_text(parse_pattern(pattern_text(tree))) == pattern_text(tree)


REFUSED = {
    "a*": "the empty text", "(a": "nothing closes", "a)": "nothing opens", "[a": "ends too early",
    "a**": "repetition of a repetition", "*a": "repetition of nothing", "(?>a)": "a kind",
    r"\1": "`\\1`", r"(?=ab)c": "more than one character", "(?:ab)++": "possessive",
    "^a": "`^` or `$`",
    r"\p{Greek}": "no general category", "a{2,1}": "wrong way round", "a{999}": "256 repetitions",
    "(?:a*)*b": "may be empty", "[b-a]": "in order", r"\x4": "hexadecimal",
    "[a||b]": "an operator",
    "a{2,3}+": "of a repetition",
    "[" * 60 + "a" + "]" * 60: "deep", "a+++": "of a repetition",
    "[a&&]": "an empty class",
    "(?i:ss)": "folds to", "(?i:\u00e9)": "not ASCII", "a{x}": "without numbers", "[]": "empty",
    r"\UFFFFFFFF": "outside of Unicode", "(?i:[a-\u00e9])": "not ASCII",
    "[[:alpha:]]": "by a name", r"\012": "octal", r"\q": "`\\q`",
    "(?:" * 60 + "a" + ")" * 60: "deep", "((a{200}){200}){200}": "too large together",
}  # fmt: skip


@pytest.mark.parametrize("source", REFUSED)
def test_what_is_not_taken(source: str) -> None:
    with pytest.raises(PatternError) as caught:
        Scanner([parse_pattern(source)])
    assert REFUSED[source] in caught.value.reason


HARD = (
    r"\s*<mask>\s*", "(?:a|a)+b", "a+b|a", "(?:a+)+c", r"\s+\z", "(?:ab?)+c|ab", ".+?x|.",
    r"\s+(?!\S)|\s+", GPT2, "(?<!a)a+(?!b)c|a", "[^b]*b|a",
)  # fmt: skip


@pytest.mark.sampled(8)
@pytest.mark.parametrize("pattern", HARD)
@pytest.mark.parametrize("unit", ["a", " ", "ab", "<mask", "\n ", "'"])
def test_steps_grow_with_the_text(pattern: str, unit: str) -> None:
    """Ten times the text, at most about ten times the steps."""

    def steps(length: int) -> int:
        budget = Budget(length)
        scanner = Scanner([parse_pattern(pattern)])
        list(scanner.matches(unit * (length // len(unit)), budget))
        return budget.spent

    assert steps(20_000) <= 12 * steps(2_000)
    assert steps(20_000) <= 40 * 20_000


@pytest.mark.full
def test_an_automaton_that_explodes_is_refused_by_the_budget() -> None:
    scanner = Scanner([parse_pattern("(?:a|b)*a(?:a|b){250}c")])
    draw = random.Random(0)
    text = "".join(draw.choice("ab") for _ in range(10_000))
    with pytest.raises(BudgetError):
        list(scanner.matches(text, Budget(len(text))))

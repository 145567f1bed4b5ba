"""Chains of tokens: as few as can be, beside a search through all sets of tokens."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.tcbcheck import token_matching
from nacre.tcbcheck.tag_order import Mask
from nacre.tcbcheck.token_matching import TokenMatching, chain_greedily
from tests.effort import scaled

COUNT = 9
EDGES = st.sets(
    st.tuples(st.integers(0, COUNT - 1), st.integers(0, COUNT - 1)).filter(lambda e: e[0] < e[1]),
    max_size=14,
)


class Pairs:
    """Which tokens are dead before others, one after the other."""

    def is_dead_before(self, token: int, other: int) -> bool:
        raise NotImplementedError

    def dead_before(self, other: int, low: int) -> Mask:
        return np.array([self.is_dead_before(t, other) for t in range(low, other)], np.bool_)


class Lives(Pairs):
    """What is asked for, and what follows from it."""

    def __init__(self, edges: set[tuple[int, int]], count: int = COUNT) -> None:
        self.after: list[set[int]] = [set() for _ in range(count)]
        for first, second in sorted(edges, reverse=True):
            self.after[first] |= {second} | self.after[second]

    def is_dead_before(self, token: int, other: int) -> bool:
        return other in self.after[token]


class Groups(Pairs):
    """Groups of four, each over before the next, in which a greedy choice is wrong.

    The third may follow the first two, the fourth only the second, which the third takes.
    """

    def is_dead_before(self, token: int, other: int) -> bool:
        if token // 4 != other // 4:
            return token < other
        return (token % 4, other % 4) in ((0, 2), (1, 2), (1, 3))


def greedy_chains(lives: Lives | Groups, count: int, limit: int) -> int:
    return count - len(chain_greedily(lives, count, limit)[0])


def chains(lives: Lives | Groups, count: int, limit: int) -> int:
    before, _ = chain_greedily(lives, count, limit)
    return TokenMatching(lives, count, before).fewest_chains(limit)


def most_alive(lives: Lives) -> int:
    """The most tokens of which none is dead before another: by Dilworth, what chains need."""
    sets = ({t for t in range(COUNT) if bits >> t & 1} for bits in range(1 << COUNT))
    return max(len(s) for s in sets if not any(lives.after[token] & s for token in s))


@settings(max_examples=scaled(200))
@given(EDGES)
def test_no_fewer_chains_hold_all_tokens(edges: set[tuple[int, int]]) -> None:
    lives = Lives(edges)
    assert chains(lives, COUNT, 0) == most_alive(lives)


@settings(max_examples=scaled(200))
@given(EDGES, st.integers(1, 5))
def test_near_tokens_alone_make_no_fewer_chains_than_there_must_be(
    edges: set[tuple[int, int]], near: int
) -> None:
    lives = Lives(edges)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(token_matching, "_MOST_PAIRS", near * COUNT)
        assert most_alive(lives) <= chains(lives, COUNT, 0) <= greedy_chains(lives, COUNT, 0)


@settings(max_examples=scaled(100))
@given(EDGES, st.integers(0, COUNT))
def test_no_more_chains_are_joined_than_have_to_be(edges: set[tuple[int, int]], limit: int) -> None:
    lives = Lives(edges)
    assert chains(lives, COUNT, limit) <= max(limit, most_alive(lives))


def test_of_very_many_tokens_those_that_are_near_are_joined() -> None:
    count = 6000
    assert greedy_chains(Groups(), count, 2) > 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(token_matching, "_MOST_PAIRS", 200 * count)
        assert chains(Groups(), count, 2) == 2

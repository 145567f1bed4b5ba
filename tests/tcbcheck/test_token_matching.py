"""Chains of tokens: as few as can be, beside a search through all sets of tokens."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.tcbcheck import live_tokens
from nacre.tcbcheck.live_tokens import _chain_greedily, _TokenMatching
from tests.effort import scaled

COUNT = 9
EDGES = st.sets(
    st.tuples(st.integers(0, COUNT - 1), st.integers(0, COUNT - 1)).filter(lambda e: e[0] < e[1]),
    max_size=14,
)


class Lives:
    """Which tokens are dead before others: what is asked for, and what follows from it."""

    def __init__(self, edges: set[tuple[int, int]], count: int = COUNT) -> None:
        self.after: list[set[int]] = [set() for _ in range(count)]
        for first, second in sorted(edges, reverse=True):
            self.after[first] |= {second} | self.after[second]

    def is_dead_before(self, token: int, other: int) -> bool:
        return other in self.after[token]


class Groups:
    """Groups of four, each over before the next, in which a greedy choice is wrong.

    The third may follow the first two, the fourth only the second, which the third takes.
    """

    def is_dead_before(self, token: int, other: int) -> bool:
        if token // 4 != other // 4:
            return token < other
        return (token % 4, other % 4) in ((0, 2), (1, 2), (1, 3))


def greedy_chains(lives: Lives | Groups, count: int, limit: int) -> int:
    return count - len(_chain_greedily(lives, list(range(count)), limit)[0])  # type: ignore[arg-type]


def chains(lives: Lives | Groups, count: int, limit: int) -> int:
    tokens = list(range(count))
    before, _ = _chain_greedily(lives, tokens, limit)  # type: ignore[arg-type]
    return _TokenMatching(lives, tokens, before).fewest_chains(limit)  # type: ignore[arg-type]


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
        patch.setattr(live_tokens, "_MOST_MATCHED", 4)
        patch.setattr(live_tokens, "_NEAR", near)
        assert most_alive(lives) <= chains(lives, COUNT, 0) <= greedy_chains(lives, COUNT, 0)


def test_of_very_many_tokens_those_that_are_near_are_joined() -> None:
    count = 4 * live_tokens._MOST_MATCHED
    assert greedy_chains(Groups(), count, 2) > 2
    assert chains(Groups(), count, 2) == 2

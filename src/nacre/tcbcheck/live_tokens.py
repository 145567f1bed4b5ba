"""Whether an image can run out of tokens: then blocks in queues may wait for one for ever.

The token of an instance is dead before another starts if by then it is complete, and all that name
it have started or are that other one. Tokens of which each is dead before the next make a chain, of
which one at most is alive at a time; so an engine needs no more tokens than there are chains. They
are put together greedily, and where that takes too many, joined further by a matching: as few as
can be, or, of very many tokens, as few as those that are near each other allow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from nacre.base.term_columns import Column
from nacre.tcb.machine.instances import Instances
from nacre.tcb.machine.prepare import token_names
from nacre.tcb.machine.units import engines_of
from nacre.tcbcheck.tag_order import Mask, Ordering
from nacre.tcbcheck.token_matching import TokenMatching, chain_greedily


class TokenShortage(Struct, frozen=True):
    """More tokens than an engine keeps may be alive at once, for the first time at an instance."""

    engine: int
    most: int
    instance: int


def find_shortages(instances: Instances, order: Ordering, limit: int) -> Iterator[TokenShortage]:
    """The engines that may run out of tokens."""
    has_token = instances.by_block(lambda placed: int(placed.block.has_token))
    engines = engines_of(instances)
    namers = _namers(instances)
    for engine in np.unique(engines[has_token == 1]).tolist():
        tokens = np.flatnonzero((has_token == 1) & (engines == engine)).tolist()
        if len(tokens) <= limit:
            continue
        lives = TokenLives(tokens, namers, order)
        before, culprit = chain_greedily(lives, len(tokens), limit)
        if culprit is None:
            continue
        most = TokenMatching(lives, len(tokens), before).fewest_chains(limit)
        if most > limit:
            yield TokenShortage(engine, most, tokens[culprit])


class TokenLives:
    """Until when the tokens of an engine are alive."""

    def __init__(
        self, tokens: list[int], namers: Mapping[int, Sequence[int]], order: Ordering
    ) -> None:
        """Tokens are told by their instances, in the order of the program, and who names each."""
        self._tokens = tokens
        self._ends = [(token, *namers.get(token, ())) for token in tokens]
        self._firsts = np.concatenate([[0], np.cumsum([len(ends) for ends in self._ends])])
        self._order = order
        self._columns = order.columns(np.array([end for ends in self._ends for end in ends]))
        self._named: dict[int, list[int]] = defaultdict(list)
        for place, ends in enumerate(self._ends):
            for namer in ends[1:]:
                self._named[namer].append(place)

    def is_dead_before(self, place: int, other: int) -> bool:
        """Whether a token is free again when another is taken."""
        start, before = self._tokens[other], self._order.before
        token, *namers = self._ends[place]
        return before(token, start) and all(
            namer == start or before(namer, start) for namer in namers
        )

    def dead_before(self, other: int, low: int) -> Mask:
        """The same for all tokens from a place on to another."""
        firsts, start = self._firsts, self._tokens[other]
        if low == other:
            return np.zeros(0, np.bool_)
        ends = self._columns.before(start, slice(firsts[low], firsts[other]))
        dead: Mask = np.logical_and.reduceat(ends, firsts[low:other] - firsts[low])
        for place in self._named[start]:
            if low <= place < other:
                dead[place - low] = self.is_dead_before(place, other)
        return dead


def _namers(instances: Instances) -> dict[int, list[int]]:
    """The instances that name each token."""
    found: dict[int, list[int]] = {}
    named, namers = token_names(instances)
    # A chain starts as one, and has one token: that of its last.
    last = _last_of_chains(instances)
    for token, namer in zip(named.tolist(), last[namers].tolist(), strict=True):
        found.setdefault(token, []).append(namer)
    return found


def _last_of_chains(instances: Instances) -> Column:
    """The last instance of every instance's chain, which is itself where it streams nowhere."""
    last = np.arange(instances.count)
    # The blocks of a chain stand one behind the other.
    for placed, rows in zip(reversed(instances.blocks), reversed(instances.numbers), strict=True):
        if placed.producer is not None:
            last[instances.numbers[placed.producer]] = last[rows]
    return last

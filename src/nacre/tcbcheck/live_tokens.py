"""Whether an image can run out of tokens: then blocks in queues may wait for one for ever.

The token of an instance is dead before another starts if by then it is complete, and all that name
it have started or are that other one. Tokens of which each is dead before the next make a chain, of
which one at most is alive at a time; so an engine needs no more tokens than there are chains. They
are put together greedily, and where that takes too many, joined further by a matching: as few as
can be, or, of very many tokens, as few as those that are near each other allow.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from nacre.base.term_columns import Column
from nacre.tcb.machine.instances import Instances
from nacre.tcb.machine.prepare import token_names
from nacre.tcb.machine.units import engines_of
from nacre.tcbcheck.tag_order import Ordering

_MOST_MATCHED = 1500  # tokens of an engine for which the least number of chains is looked for
_NEAR = 256  # among how many before it a token looks for one to follow, where there are more
_MOST_PAIRS = 2_000_000  # that are compared then


class TokenShortage(Struct, frozen=True):
    """More tokens than an engine keeps may be alive at once, for the first time at an instance."""

    engine: int
    most: int
    instance: int


def find_shortages(instances: Instances, order: Ordering, limit: int) -> Iterator[TokenShortage]:
    """The engines that may run out of tokens."""
    lives = _TokenLives(instances, order)
    has_token = instances.by_block(lambda placed: int(placed.block.has_token))
    engines = engines_of(instances)
    for engine in np.unique(engines[has_token == 1]).tolist():
        tokens = np.flatnonzero((has_token == 1) & (engines == engine)).tolist()
        if len(tokens) <= limit:
            continue
        before, culprit = _chain_greedily(lives, tokens, limit)
        if culprit is None:
            continue
        most = _TokenMatching(lives, tokens, before).fewest_chains(limit)
        if most > limit:
            yield TokenShortage(engine, most, culprit)


class _TokenLives:
    """Until when tokens are alive."""

    def __init__(self, instances: Instances, order: Ordering) -> None:
        self._before = order.before
        self._namers: dict[int, list[int]] = {}
        named, namers = token_names(instances)
        # A chain starts as one, and has one token: that of its last.
        last = _last_of_chains(instances)
        for token, namer in zip(named.tolist(), last[namers].tolist(), strict=True):
            self._namers.setdefault(token, []).append(namer)

    def is_dead_before(self, token: int, other: int) -> bool:
        """Whether a token is free again when another is taken."""
        before = self._before
        return before(token, other) and all(
            namer == other or before(namer, other) for namer in self._namers.get(token, ())
        )


def _last_of_chains(instances: Instances) -> Column:
    """The last instance of every instance's chain, which is itself where it streams nowhere."""
    last = np.arange(instances.count)
    # The blocks of a chain stand one behind the other.
    for placed, rows in zip(reversed(instances.blocks), reversed(instances.numbers), strict=True):
        if placed.producer is not None:
            last[instances.numbers[placed.producer]] = last[rows]
    return last


def _chain_greedily(
    lives: _TokenLives, tokens: list[int], limit: int
) -> tuple[dict[int, int], int | None]:
    """What each token follows in its chain, and the first that begins one chain too many."""
    ends: list[int] = []  # of chains, the one that was last added to at the end
    before: dict[int, int] = {}
    culprit = None
    for token in tokens:
        at = next((at for at in reversed(range(len(ends)))
                   if lives.is_dead_before(ends[at], token)), None)  # fmt: skip
        if at is not None:
            before[token] = ends.pop(at)
        elif len(ends) >= limit and culprit is None:
            culprit = token
        ends.append(token)
    return before, culprit


class _TokenMatching:
    """Pairs of tokens of which one follows the other in a chain; any such pairs make chains."""

    def __init__(self, lives: _TokenLives, tokens: list[int], before: dict[int, int]) -> None:
        self._lives, self._tokens = lives, tokens
        self._places = {token: place for place, token in enumerate(tokens)}
        self._before = dict(before)
        self._follows = {first: second for second, first in before.items()}
        self._earlier: dict[int, list[int]] = {}  # what a token may follow
        self._near = len(tokens) if len(tokens) <= _MOST_MATCHED else _NEAR
        self._compared = 0

    def fewest_chains(self, limit: int) -> int:
        """How many chains there are when no more can be joined, or no more have to be."""
        chains = len(self._tokens) - len(self._before)
        for token in self._tokens:
            if chains <= limit:
                break
            if token not in self._before:
                chains -= self._improve(token)
        return chains

    def _improve(self, token: int) -> bool:
        """Find something for a token to follow, moving others on; breadth first."""
        reached_from: dict[int, int] = {}
        queue = [token]
        for at in queue:
            for first in self._candidates(at):
                if first in reached_from:
                    continue
                reached_from[first] = at
                if first not in self._follows:
                    self._move_on(first, reached_from)
                    return True
                queue.append(self._follows[first])
        return False

    def _candidates(self, token: int) -> list[int]:
        """What a token may follow, of those that are near it."""
        found = self._earlier.get(token)
        if found is None:
            place = self._places[token]
            near = self._tokens[max(0, place - self._near) : place]
            if len(self._tokens) > _MOST_MATCHED and self._compared > _MOST_PAIRS:
                near = []
            self._compared += len(near)
            found = [one for one in near if self._lives.is_dead_before(one, token)]
            self._earlier[token] = found
        return found

    def _move_on(self, first: int, reached_from: dict[int, int]) -> None:
        """Give everybody on the way what was found for it."""
        free: int | None = first
        while free is not None:
            second = reached_from[free]
            moved = self._before.get(second)
            self._follows[free] = second
            self._before[second] = free
            free = moved

"""As few chains of tokens as can be: a greedy choice, and pairs joined until no more can be.

What a token may follow is a row of bits. A search for something to follow goes breadth first, by
whole rows; what a search in vain has reached cannot help a later one and is left out from then on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from nacre.tcbcheck.tag_order import Mask

_MOST_PAIRS = 400_000_000  # of an engine that are compared: those of 20,000 tokens with all others


class Lives(Protocol):
    """Until when tokens are alive, by their places in the program."""

    def is_dead_before(self, token: int, other: int) -> bool:
        """Whether a token is free again when another is taken."""

    def dead_before(self, other: int, low: int) -> Mask:
        """Which tokens, from a place on to another, are free again when the other is taken."""


def chain_greedily(lives: Lives, count: int, limit: int) -> tuple[dict[int, int], int | None]:
    """What each token follows in its chain, and the first that begins one chain too many."""
    ends: list[int] = []  # of chains, the one that was last added to at the end
    before: dict[int, int] = {}
    culprit = None
    for token in range(count):
        at = next((at for at in reversed(range(len(ends)))
                   if lives.is_dead_before(ends[at], token)), None)  # fmt: skip
        if at is not None:
            before[token] = ends.pop(at)
        elif len(ends) >= limit and culprit is None:
            culprit = token
        ends.append(token)
    return before, culprit


class TokenMatching:
    """Pairs of tokens of which one follows the other in a chain; any such pairs make chains."""

    def __init__(self, lives: Lives, count: int, before: dict[int, int]) -> None:
        """Begin with what tokens follow already."""
        self._lives, self._count = lives, count
        self._before = dict(before)
        self._follows = {first: second for second, first in before.items()}
        self._last = _bits_of(np.array([t not in self._follows for t in range(count)], np.bool_))
        self._in_vain = 0  # what searches have reached that found nothing
        self._earlier: dict[int, int] = {}  # what a token may follow, counted from `_low`
        self._near = max(1, _MOST_PAIRS // max(1, count))

    def fewest_chains(self, limit: int) -> int:
        """How many chains there are when no more can be joined, or no more have to be."""
        chains = self._count - len(self._before)
        for token in range(self._count):
            if chains <= limit:
                break
            if token not in self._before:
                chains -= self._improve(token)
        return chains

    def _improve(self, token: int) -> bool:
        """Find something for a token to follow, moving others on; breadth first."""
        reached_from: dict[int, int] = {}
        reached = self._in_vain
        queue = [token]
        for at in queue:
            low, earlier = self._low(at), self._candidates(at)
            if ends := earlier & (self._last >> low):
                first = low + ends.bit_length() - 1
                reached_from[first] = at
                self._last ^= 1 << first
                self._move_on(first, reached_from)
                return True
            found = earlier & ~(reached >> low)
            reached |= found << low
            for place in _places(found):
                reached_from[low + place] = at
                queue.append(self._follows[low + place])
        self._in_vain = reached
        return False

    def _low(self, token: int) -> int:
        return max(0, token - self._near)

    def _candidates(self, token: int) -> int:
        """What a token may follow, of those that are near it."""
        found = self._earlier.get(token)
        if found is None:
            found = _bits_of(self._lives.dead_before(token, self._low(token)))
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


def _bits_of(mask: Mask) -> int:
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")


def _places(bits: int) -> Iterator[int]:
    """The places of the bits that are set."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest

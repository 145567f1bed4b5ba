"""BPE: neighbours merge, the pair of the lowest rank first, from the left."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise

from nacre.nac.tisa.budget import Budget

_PLACE_BITS = 40
_PLACE = (1 << _PLACE_BITS) - 1
_MOST_CACHED = 1 << 14
_LONGEST_CACHED = 64

# The rank and the id that a pair of ids becomes.
Pairs = dict[tuple[int, int], tuple[int, int]]


class Bpe:
    """The merges of a vocabulary."""

    def __init__(
        self, ids: dict[str, int], merges: Sequence[tuple[str, str]], unknown: int, suffix: str
    ) -> None:
        self._ids = ids
        self._unknown = unknown
        self._suffix = suffix
        self._pairs: Pairs = {
            (ids[first], ids[second]): (rank, ids[first + second])
            for rank, (first, second) in enumerate(merges)
        }
        self._made_by = dict(self._pairs.values())
        self._known: dict[str, list[int]] = {}

    def __call__(self, fragment: str, budget: Budget) -> list[int]:
        """The ids of a fragment."""
        known = self._known.get(fragment)
        if known is not None:
            return known
        budget.spend(4 * len(fragment) + 1)
        ids = self._merge(self._letters(fragment))
        if len(fragment) <= _LONGEST_CACHED:
            if len(self._known) >= _MOST_CACHED:
                self._known.clear()
            self._known[fragment] = ids
        return ids

    def _letters(self, fragment: str) -> list[int]:
        """One id for each character; the last one carries the suffix."""
        get, unknown = self._ids.get, self._unknown
        made = [get(character, unknown) for character in fragment]
        if self._suffix and fragment:
            made[-1] = get(fragment[-1] + self._suffix, unknown)
        return made

    def _merge(self, ids: list[int]) -> list[int]:
        """Merge until nothing is left to do; `ids` is changed."""
        count = len(ids)
        following = list(range(1, count + 1))
        before = list(range(-1, count - 1))
        get = self._pairs.get
        queue = [
            rank[0] << _PLACE_BITS | at
            for at, pair in enumerate(pairwise(ids))
            if (rank := get(pair)) is not None
        ]
        heapify(queue)
        made_by = self._made_by
        while queue:
            top = heappop(queue)
            at = top & _PLACE
            right = following[at]
            if right >= count or ids[at] < 0:
                continue
            # The pair may be another one by now. One that becomes the same id merges all the same,
            # which is how the `tokenizers` library does it.
            now = get((ids[at], ids[right]))
            if now is None or now[1] != made_by[top >> _PLACE_BITS]:
                continue
            ids[at], ids[right] = now[1], -1
            after = following[at] = following[right]
            if after < count:
                before[after] = at
                if (rank := get((now[1], ids[after]))) is not None:
                    heappush(queue, rank[0] << _PLACE_BITS | at)
            previous = before[at]
            if previous >= 0 and (rank := get((ids[previous], now[1]))) is not None:
                heappush(queue, rank[0] << _PLACE_BITS | previous)
        return [made for made in ids if made >= 0]

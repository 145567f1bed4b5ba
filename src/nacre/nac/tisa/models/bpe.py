"""BPE: neighbours merge, the pair of the lowest rank first, from the left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import TypeVar

from nacre.nac.tisa.budget import Budget
from nacre.nac.tisa.models.boundaries import MergeBoundaries, boundaries_of
from nacre.nac.tisa.models.extents import Extent, byte_token, extents_of_bytes

_PLACE_BITS = 40
_PLACE = (1 << _PLACE_BITS) - 1
_MOST_CACHED = 1 << 16
_LONGEST_CACHED = 64
_NONE = -1

# The rank and the id that a pair of ids becomes.
Pairs = dict[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True)
class BpeOptions:
    """How letters become ids before they merge."""

    unknown: int = _NONE  # the id of an unknown letter; none: it goes away
    prefix: str = ""  # in front of every letter but the first
    suffix: str = ""  # behind the last letter
    fuses_unknown: bool = False  # unknown letters in a row are one
    has_bytes: bool = False  # an unknown letter becomes tokens for its bytes, if there are all
    takes_words: bool = False  # a fragment that is a token is that, whatever would merge


class Bpe:
    """The merges of a vocabulary."""

    def __init__(
        self, ids: Mapping[str, int], merges: Sequence[tuple[str, str]], options: BpeOptions
    ) -> None:
        self._ids = ids
        self._options = options
        cut = len(options.prefix)
        self._pairs: Pairs = {
            (ids[first], ids[second]): (rank, ids[first + second[cut:]])
            for rank, (first, second) in enumerate(merges)
        }
        self._made_by = dict(self._pairs.values())
        self._boundaries = self._find_boundaries(merges)
        self._known: dict[str, list[int]] = {}
        self._extents: dict[str, list[Extent]] = {}
        self._parts: dict[str, list[Extent]] = {}  # of long fragments
        self._part_ids: dict[str, list[int]] = {}

    def _find_boundaries(self, merges: Sequence[tuple[str, str]]) -> MergeBoundaries | None:
        options = self._options
        if options.prefix or options.suffix:
            return None
        if options.unknown == _NONE:
            return None  # letters that go away shift the places of all that follow
        opaque = {byte_token(byte) for byte in range(0x100)} if options.has_bytes else set()
        opaque.add(next((t for t, index in self._ids.items() if index == options.unknown), ""))
        return boundaries_of(self._ids, merges, opaque)

    def __call__(self, fragment: str, budget: Budget) -> list[int]:
        """The ids of a fragment."""
        known = self._known.get(fragment)
        if known is not None:
            return known
        budget.spend(4 * len(fragment) + 1)
        whole = self._word(fragment)
        if whole is not None:
            ids = [whole]
        elif len(fragment) > _LONGEST_CACHED and self._boundaries is not None:
            return self._join_ids(self._boundaries.parts(fragment))
        else:
            ids = self._merge(self._letters(fragment)[0], None)
        if len(fragment) <= _LONGEST_CACHED:
            _keep(self._known, fragment, ids)
        return ids

    def extents(self, fragment: str, budget: Budget) -> list[Extent]:
        """The same ids with their places."""
        known = self._extents.get(fragment)
        if known is not None:
            return known
        budget.spend(8 * len(fragment) + 1)
        whole = self._word(fragment)
        if whole is not None:
            made = [Extent(whole, 0, len(fragment))]
        elif len(fragment) > _LONGEST_CACHED and self._boundaries is not None:
            return self._join_parts(self._boundaries.parts(fragment))
        else:
            made = self._merge_extents(fragment)
        if len(fragment) <= _LONGEST_CACHED:
            _keep(self._extents, fragment, made)
        return made

    def _merge_extents(self, fragment: str) -> list[Extent]:
        ids, lengths = self._letters(fragment)
        merged = self._merge(ids, lengths)
        return extents_of_bytes(fragment, merged, [n for n in lengths if n])

    def _join_ids(self, parts: list[str]) -> list[int]:
        """The ids of parts that merge apart."""
        ids: list[int] = []
        known = self._part_ids
        for part in parts:
            found = known.get(part)
            if found is None:
                found = self._merge(self._letters(part)[0], None)
                if len(part) <= _LONGEST_CACHED:
                    _keep(known, part, found)
            ids += found
        return ids

    def _join_parts(self, parts: list[str]) -> list[Extent]:
        """The extents of parts that merge apart, one behind another."""
        extents: list[Extent] = []
        known = self._parts
        start = 0
        for part in parts:
            found = known.get(part)
            if found is None:
                found = self._merge_extents(part)
                if len(part) <= _LONGEST_CACHED:
                    _keep(known, part, found)
            extents += [Extent(each[0], start + each[1], start + each[2]) for each in found]
            start += len(part)
        return extents

    def _word(self, fragment: str) -> int | None:
        return self._ids.get(fragment) if self._options.takes_words else None

    def _letters(self, fragment: str) -> tuple[list[int], list[int]]:
        """One id for each letter, and how many bytes it has."""
        get, options = self._ids.get, self._options
        prefix, last = options.prefix, len(fragment) - 1
        letters = [prefix + c for c in fragment] if prefix else list(fragment)
        if prefix:
            letters[0] = fragment[0]
        if options.suffix and letters:
            letters[last] += options.suffix
        ids = [get(letter, _NONE) for letter in letters]
        if fragment.isascii():
            lengths = [1] * len(fragment)
        else:
            lengths = [len(c.encode("utf-8")) for c in fragment]
        return self._known_letters(letters, ids, lengths) if _NONE in ids else (ids, lengths)

    def _known_letters(
        self, letters: list[str], ids: list[int], lengths: list[int]
    ) -> tuple[list[int], list[int]]:
        """Bytes or the id for what is unknown in the place of letters without an id.

        An unknown letter waits for the next letter that is known; bytes do not wait for it. That is
        the order of the `tokenizers` library.
        """
        options = self._options
        made: list[int] = []
        sizes: list[int] = []
        waiting = 0
        for letter, index, size in zip(letters, ids, lengths, strict=True):
            if index == _NONE and options.has_bytes:
                found = [self._ids.get(byte_token(b), _NONE) for b in letter.encode("utf-8")]
                if _NONE not in found:
                    made += found
                    sizes += [1] * len(found)
                    continue
            if waiting and not (index == _NONE and options.fuses_unknown):
                made.append(options.unknown)
                sizes.append(waiting)
                waiting = 0
            if index != _NONE:
                made.append(index)
                sizes.append(size)
            elif options.unknown != _NONE:
                waiting += size
        if waiting:
            made.append(options.unknown)
            sizes.append(waiting)
        return made, sizes

    def _merge(self, ids: list[int], lengths: list[int] | None) -> list[int]:
        """Merge until nothing is left to do; `ids` is changed, and so are `lengths`."""
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
            ids[at], ids[right] = now[1], _NONE
            if lengths is not None:
                lengths[at], lengths[right] = lengths[at] + lengths[right], 0
            after = following[at] = following[right]
            if after < count:
                before[after] = at
                if (rank := get((now[1], ids[after]))) is not None:
                    heappush(queue, rank[0] << _PLACE_BITS | at)
            previous = before[at]
            if previous >= 0 and (rank := get((ids[previous], now[1]))) is not None:
                heappush(queue, rank[0] << _PLACE_BITS | previous)
        return [made for made in ids if made >= 0]


Kept = TypeVar("Kept")


def _keep(known: dict[str, Kept], fragment: str, made: Kept) -> None:
    """Remember what a fragment became, among so many at most."""
    if len(known) >= _MOST_CACHED:
        known.clear()
    known[fragment] = made

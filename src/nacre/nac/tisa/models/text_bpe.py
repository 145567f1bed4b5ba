"""BPE without merges: neighbours join where their texts are a token, the highest score first.

So it is in SentencePiece and in tiktoken. Merges with a rank each say nearly the same; they differ
where two pairs that overlap become one token, as in a run of spaces.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush

from nacre.nac.tisa.budget import Budget
from nacre.nac.tisa.models.boundaries import MergeBoundaries
from nacre.nac.tisa.models.bpe import BpeOptions
from nacre.nac.tisa.models.extents import Extent, UnknownError, byte_token, extents_of_character
from nacre.nac.tisa.models.pieces import CachedModel

_PLACE_BITS = 40
_PLACE = (1 << _PLACE_BITS) - 1
_LONG_FRAGMENT = 64
_NONE = -1


class TextBpe(CachedModel):
    """Tokens by their text and score."""

    def __init__(
        self,
        ids: Mapping[str, int],
        scores: Mapping[str, float],
        options: BpeOptions,
        all_ids: Mapping[str, int],
    ) -> None:
        super().__init__()
        self._ids = ids
        self._options = options
        self._bytes = [all_ids.get(byte_token(byte), _NONE) for byte in range(0x100)]
        order = {score: at for at, score in enumerate(sorted(set(scores.values()), reverse=True))}
        self._ranks = {token: order[score] for token, score in scores.items()}
        self._longest = max(map(len, ids), default=0)
        self._boundaries = MergeBoundaries(ids, ids)
        self._parts: dict[str, list[Extent]] = {}

    def _find(self, fragment: str, budget: Budget) -> list[Extent]:
        budget.spend(8 * len(fragment) + 1)
        if self._options.takes_words and fragment in self._ids:
            return [Extent(self._ids[fragment], 0, len(fragment))]
        if len(fragment) <= _LONG_FRAGMENT:
            return self._extents_of(fragment)
        extents: list[Extent] = []
        start = 0
        for part in self._boundaries.parts(fragment):
            found = self._parts.get(part)
            if found is None:
                found = self._extents_of(part)
                self._keep(self._parts, part, found)
            extents += [Extent(e[0], start + e[1], start + e[2], e[3]) for e in found]
            start += len(part)
        return extents

    def _extents_of(self, fragment: str) -> list[Extent]:
        extents: list[Extent] = []
        unknown_from = _NONE  # where unknown neighbours begin that are one
        for start, end in self._merge(fragment):
            index = self._ids.get(fragment[start:end], _NONE)
            if index != _NONE:
                extents.append(Extent(index, start, end))
                unknown_from = _NONE
                continue
            found = [self._bytes[byte] for byte in fragment[start:end].encode("utf-8")]
            if self._options.has_bytes and _NONE not in found:
                extents += extents_of_character(found, start, end)
                unknown_from = _NONE
                continue
            if self._options.unknown == _NONE:
                raise UnknownError(f"{fragment[start:end]!r} is no token, and there is none for it")
            if unknown_from != _NONE and self._options.fuses_unknown:
                extents.pop()
            else:
                unknown_from = start
            shown = fragment[unknown_from:end]
            extents.append(Extent(self._options.unknown, unknown_from, end, shown))
        return extents

    def _merge(self, fragment: str) -> list[tuple[int, int]]:
        """Starts and ends of what is left when nothing joins any more."""
        count = len(fragment)
        ends = list(range(1, count + 1))  # of the symbol that begins at a place; 0: none does
        before = list(range(-1, count - 1))
        ranks, longest = self._ranks, self._longest
        queue: list[tuple[int, int]] = []  # rank and start in one number, and the end
        for at in range(count - 1):
            rank = ranks.get(fragment[at : at + 2])
            if rank is not None:
                queue.append((rank << _PLACE_BITS | at, at + 2))
        heapify(queue)
        while queue:
            top, end = heappop(queue)
            at = top & _PLACE
            middle = ends[at]
            if not middle or middle >= count or ends[middle] != end:
                continue  # one of both has joined another one
            ends[middle] = 0
            ends[at] = end
            if end < count:
                before[end] = at
                if (stop := ends[end]) - at <= longest:
                    rank = ranks.get(fragment[at:stop])
                    if rank is not None:
                        heappush(queue, (rank << _PLACE_BITS | at, stop))
            previous = before[at]
            if previous >= 0 and end - previous <= longest:
                rank = ranks.get(fragment[previous:end])
                if rank is not None:
                    heappush(queue, (rank << _PLACE_BITS | previous, end))
        symbols: list[tuple[int, int]] = []
        at = 0
        while at < count:
            symbols.append((at, ends[at]))
            at = ends[at]
        return symbols

"""Unigram and words as SentencePiece has them: to the last bit of its sums."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Mapping

from nacre.nac.tisa.budget import Budget
from nacre.nac.tisa.models.extents import Extent, UnknownError, byte_token, extents_of_character
from nacre.nac.tisa.models.pieces import CachedModel
from nacre.nac.tisa.trie import Trie

_UNKNOWN_PENALTY = 10.0
_SYMBOL_PENALTY = 0.1  # a symbol scores as the best token for each of its bytes, and a little less
_F32 = struct.Struct("<f")
_NONE = -1
MARK = "\u2581"


def _single(value: float) -> float:
    """Rounded to 32 bits."""
    return float(_F32.unpack(_F32.pack(value))[0])


class _SentenceModel(CachedModel):
    """Puts ids in the place of pieces; unknown neighbours are one, or bytes."""

    def __init__(self, unknown: int, byte_ids: Mapping[str, int] | None) -> None:
        super().__init__()
        self._unknown = unknown
        known = byte_ids or {}
        self._bytes = [known.get(byte_token(byte), _NONE) for byte in range(0x100)]

    def _extents_of(self, fragment: str, pieces: list[tuple[int, int, int]]) -> list[Extent]:
        """Extents of pieces with their starts and ends; id -1: unknown."""
        extents: list[Extent] = []
        unknown_from = _NONE
        for index, start, end in pieces:
            if index != _NONE:
                extents.append(Extent(index, start, end))
                unknown_from = _NONE
                continue
            found = [self._bytes[byte] for byte in fragment[start:end].encode("utf-8")]
            if _NONE not in found:
                extents += extents_of_character(found, start, end)
                unknown_from = _NONE
                continue
            if self._unknown == _NONE:
                raise UnknownError(f"{fragment[start:end]!r} is no token, and there is none for it")
            if unknown_from == _NONE:
                unknown_from = start
            else:
                extents.pop()
            extents.append(Extent(self._unknown, unknown_from, end, fragment[unknown_from:end]))
        return extents


class SentenceUnigram(_SentenceModel):
    """The tokens whose scores have the highest sum; sums have 32 bits."""

    def __init__(
        self,
        scores: Mapping[str, tuple[int, float]],
        unknown: int,
        symbols: frozenset[str],
        byte_ids: Mapping[str, int] | None,
    ) -> None:
        super().__init__(unknown, byte_ids)
        self._trie = Trie((token, index) for token, (index, _) in scores.items())
        normal = [score for token, (_, score) in scores.items() if token not in symbols]
        highest = max(normal, default=0.0)
        self._unknown_score = _single(min(normal, default=0.0) - _UNKNOWN_PENALTY)
        self._scores = {
            index: _single(len(token.encode("utf-8")) * highest) - _SYMBOL_PENALTY
            if token in symbols
            else score
            for token, (index, score) in scores.items()
        }

    def _find(self, fragment: str, budget: Budget) -> list[Extent]:
        size = len(fragment)
        best = [0.0] * (size + 1)
        starts = [_NONE] * (size + 1)
        tokens = [_NONE] * (size + 1)
        ways, ids, scores = self._trie.ways, self._trie.ids, self._scores
        for start in range(size):
            so_far = best[start]
            node, at = 0, start
            while at < size and (node := ways[node].get(fragment[at], _NONE)) >= 0:
                at += 1
                index = ids[node]
                if index >= 0:
                    score = _single(so_far + scores[index])
                    if starts[at] < 0 or score > best[at]:
                        best[at], starts[at], tokens[at] = score, start, index
            budget.spend(at - start + 1)
            if ids[ways[0].get(fragment[start], 0)] < 0:
                at, score = start + 1, _single(so_far + self._unknown_score)
                if starts[at] < 0 or score > best[at]:
                    best[at], starts[at], tokens[at] = score, start, _NONE
        pieces: list[tuple[int, int, int]] = []
        at = size
        while at > 0:
            pieces.append((tokens[at], starts[at], at))
            at = starts[at]
        return self._extents_of(fragment, pieces[::-1])


class SentenceWords(_SentenceModel):
    """A token for every word with the mark in front of it."""

    def __init__(
        self, ids: Mapping[str, int], unknown: int, byte_ids: Mapping[str, int] | None
    ) -> None:
        super().__init__(unknown, byte_ids)
        self._ids = ids

    def _find(self, fragment: str, budget: Budget) -> list[Extent]:
        budget.spend(len(fragment) + 1)
        marks = (at for at, letter in enumerate(fragment) if at and letter == MARK)
        cuts = [0, *marks, len(fragment)]
        pieces = [
            (self._ids.get(fragment[start:end], _NONE), start, end)
            for start, end in itertools.pairwise(cuts)
        ]
        return self._extents_of(fragment, pieces)

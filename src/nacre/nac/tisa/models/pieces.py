"""WordPiece, Unigram and WordLevel: tokens that are found as they are written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from nacre.nac.tisa.budget import Budget
from nacre.nac.tisa.models.extents import Extent, UnknownError, byte_token
from nacre.nac.tisa.trie import Trie

LONGEST_WORD = 100  # characters; WordPiece takes longer words as unknown
_UNKNOWN_PENALTY = 10.0  # what an unknown character scores below the lowest token
_MOST_CACHED = 1 << 16
_LONGEST_CACHED = 64
_NONE = -1


class CachedModel(ABC):
    """Keeps what fragments became: texts repeat their words."""

    def __init__(self) -> None:
        self._known: dict[str, list[Extent]] = {}
        self._known_ids: dict[str, list[int]] = {}

    def __call__(self, fragment: str, budget: Budget) -> list[int]:
        """The ids of a fragment."""
        known = self._known_ids.get(fragment)
        if known is None:
            known = [extent.id for extent in self.extents(fragment, budget)]
            if len(fragment) <= _LONGEST_CACHED:
                self._known_ids[fragment] = known
        return known

    def extents(self, fragment: str, budget: Budget) -> list[Extent]:
        """The same ids with their places."""
        known = self._known.get(fragment)
        if known is None:
            known = self._find(fragment, budget)
            if len(fragment) <= _LONGEST_CACHED:
                if len(self._known) >= _MOST_CACHED:
                    self._known.clear()
                    self._known_ids.clear()
                self._known[fragment] = known
        return known

    @staticmethod
    def _keep(known: dict[str, list[Extent]], fragment: str, made: list[Extent]) -> None:
        """Remember what a short part of a fragment became, among so many at most."""
        if len(fragment) <= _LONGEST_CACHED:
            if len(known) >= _MOST_CACHED:
                known.clear()
            known[fragment] = made

    @abstractmethod
    def _find(self, fragment: str, budget: Budget) -> list[Extent]:
        """The tokens of a fragment that is not remembered."""


class WordPiece(CachedModel):
    """The longest token from the left; one unknown for a word with a part that is none."""

    def __init__(
        self, ids: Mapping[str, int], marker: str, unknown: int, longest: int = LONGEST_WORD
    ) -> None:
        super().__init__()
        size = len(marker)
        self._first = Trie(ids.items())
        inner = ((t[size:], i) for t, i in ids.items() if t.startswith(marker) and len(t) > size)
        self._inner = Trie(inner) if marker else self._first
        self._unknown = unknown
        self._longest = longest

    def _find(self, fragment: str, budget: Budget) -> list[Extent]:
        unknown = [Extent(self._unknown, 0, len(fragment))]
        if len(fragment) > self._longest:
            budget.spend(1)
            return unknown
        extents: list[Extent] = []
        at = 0
        while at < len(fragment):
            end, token_id = (self._inner if at else self._first).longest(fragment, at)
            budget.spend(end - at + 1)
            if token_id < 0:
                return unknown
            extents.append(Extent(token_id, at, end))
            at = end
        return extents


class WordLevel(CachedModel):
    """A token for every fragment."""

    def __init__(self, ids: Mapping[str, int], unknown: int) -> None:
        super().__init__()
        self._ids = ids
        self._unknown = unknown

    def _find(self, fragment: str, budget: Budget) -> list[Extent]:
        budget.spend(1)
        found = self._ids.get(fragment, self._unknown)
        if found == _NONE:
            shown = f"{fragment[:40]!r} is no token"
            raise UnknownError(f"{shown}, and there is none for what is unknown")
        return [Extent(found, 0, len(fragment))]


class Unigram(CachedModel):
    """The tokens whose scores have the highest sum; unknown neighbours become one."""

    def __init__(
        self, scores: Mapping[str, tuple[int, float]], unknown: int, has_bytes: bool = False
    ) -> None:
        super().__init__()
        self._trie = Trie((token, index) for token, (index, _) in scores.items())
        self._ids = {token: index for token, (index, _) in scores.items()}
        self._scores = dict(scores.values())
        lowest = min((score for _, score in scores.values()), default=0.0)
        self._unknown = unknown
        self._unknown_score = lowest - _UNKNOWN_PENALTY
        self._has_bytes = has_bytes

    def _find(self, fragment: str, budget: Budget) -> list[Extent]:
        size = len(fragment)
        best = [0.0] * (size + 1)
        starts = [_NONE] * (size + 1)
        tokens = [_NONE] * (size + 1)
        scores = self._scores
        for start in range(size):
            so_far = best[start]
            is_covered = False
            for at, index in self._tokens_at(fragment, start, budget):
                score = so_far + scores[index]
                if starts[at] < 0 or score > best[at]:
                    best[at], starts[at], tokens[at] = score, start, index
                is_covered |= at == start + 1
            if not is_covered:
                at, score = start + 1, so_far + self._unknown_score
                if starts[at] < 0 or score > best[at]:
                    best[at], starts[at], tokens[at] = score, start, self._require_unknown()
        return self._extents_of(fragment, self._best_path(starts, tokens))

    def _require_unknown(self) -> int:
        if self._unknown == _NONE:
            raise UnknownError("a character is no token, and there is none for what is unknown")
        return self._unknown

    def _tokens_at(self, fragment: str, start: int, budget: Budget) -> list[tuple[int, int]]:
        """The ends and ids of all tokens at a place, the shortest first."""
        ways, ids = self._trie.ways, self._trie.ids
        node = 0
        tokens: list[tuple[int, int]] = []
        at = start
        while at < len(fragment):
            node = ways[node].get(fragment[at], _NONE)
            if node < 0:
                break
            at += 1
            if ids[node] >= 0:
                tokens.append((at, ids[node]))
        budget.spend(at - start + 1)
        return tokens

    def _best_path(self, starts: list[int], tokens: list[int]) -> list[tuple[int, int]]:
        """Where the tokens of the best way begin and end; neighbours that are unknown are one."""
        path: list[tuple[int, int]] = []
        at = len(starts) - 1
        is_open = False
        while at > 0:
            is_unknown = tokens[at] == self._unknown != _NONE
            if is_unknown and is_open:
                path[-1] = starts[at], path[-1][1]
            else:
                path.append((starts[at], at))
            is_open = is_unknown
            at = starts[at]
        path.reverse()
        return path

    def _extents_of(self, fragment: str, path: list[tuple[int, int]]) -> list[Extent]:
        extents: list[Extent] = []
        for start, end in path:
            text = fragment[start:end]
            index = self._ids.get(text)
            if index is not None:
                extents.append(Extent(index, start, end))
                continue
            found = [self._ids.get(byte_token(b), _NONE) for b in text.encode("utf-8")]
            if self._has_bytes and _NONE not in found:
                extents += [Extent(byte, start, end) for byte in found]
            else:
                extents.append(Extent(self._require_unknown(), start, end, text))
        return extents

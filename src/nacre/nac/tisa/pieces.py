"""WordPiece and Unigram: tokens that are found in a trie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nacre.nac.tisa.budget import Budget

LONGEST_WORD = 100  # characters; WordPiece takes longer words as unknown
_UNKNOWN_PENALTY = 10.0  # what an unknown character scores below the lowest token


class Trie:
    """Tokens by their characters, so that all that begin at a place are found in one walk."""

    def __init__(self, tokens: Iterable[tuple[str, int]]) -> None:
        self.ways: list[dict[str, int]] = [{}]  # from a node by a character to a node
        self.ids: list[int] = [-1]  # of the token that ends at a node
        for token, index in tokens:
            node = 0
            for character in token:
                following = self.ways[node].get(character)
                if following is None:
                    following = self.ways[node][character] = len(self.ways)
                    self.ways.append({})
                    self.ids.append(-1)
                node = following
            self.ids[node] = index

    def longest(self, text: str, start: int) -> tuple[int, int]:
        """The end and id of the longest token at a place; id -1: there is none."""
        node, best = 0, (start, -1)
        for at in range(start, len(text)):
            node = self.ways[node].get(text[at], -1)
            if node < 0:
                break
            if self.ids[node] >= 0:
                best = at + 1, self.ids[node]
        return best


class WordPiece:
    """The longest token from the left; one unknown for a word with a part that is none."""

    def __init__(self, ids: Mapping[str, int], marker: str, unknown: int) -> None:
        size = len(marker)
        self._first = Trie(ids.items())
        inner = ((t[size:], i) for t, i in ids.items() if t.startswith(marker) and len(t) > size)
        self._inner = Trie(inner) if marker else self._first
        self._unknown = unknown

    def __call__(self, fragment: str, budget: Budget) -> list[int]:
        """The ids of a fragment."""
        budget.spend(len(fragment) + 1)
        if len(fragment) > LONGEST_WORD:
            return [self._unknown]
        ids: list[int] = []
        at = 0
        while at < len(fragment):
            at, token_id = (self._inner if at else self._first).longest(fragment, at)
            if token_id < 0:
                return [self._unknown]
            ids.append(token_id)
        return ids


class Unigram:
    """The tokens whose scores have the highest sum; unknown neighbours become one."""

    def __init__(self, scores: Mapping[str, tuple[int, float]], unknown: int) -> None:
        self._trie = Trie((token, index) for token, (index, _) in scores.items())
        self._scores = dict(scores.values())
        lowest = min((score for _, score in scores.values()), default=0.0)
        self._unknown = unknown
        self._unknown_score = lowest - _UNKNOWN_PENALTY

    def __call__(self, fragment: str, budget: Budget) -> list[int]:
        """The ids of a fragment."""
        size = len(fragment)
        best = [0.0] * (size + 1)
        starts = [-1] * (size + 1)
        tokens = [-1] * (size + 1)
        for start in range(size):
            so_far = best[start]
            is_covered = False
            for at, index in self._tokens_at(fragment, start, budget):
                score = so_far + self._scores[index]
                if starts[at] < 0 or score > best[at]:
                    best[at], starts[at], tokens[at] = score, start, index
                is_covered |= at == start + 1
            if not is_covered:
                at, score = start + 1, so_far + self._unknown_score
                if starts[at] < 0 or score > best[at]:
                    best[at], starts[at], tokens[at] = score, start, self._unknown
        return self._best_path(starts, tokens)

    def _tokens_at(self, fragment: str, start: int, budget: Budget) -> list[tuple[int, int]]:
        """The ends and ids of all tokens at a place, the shortest first."""
        ways, ids = self._trie.ways, self._trie.ids
        node = 0
        tokens: list[tuple[int, int]] = []
        at = start
        while at < len(fragment):
            node = ways[node].get(fragment[at], -1)
            if node < 0:
                break
            at += 1
            if ids[node] >= 0:
                tokens.append((at, ids[node]))
        budget.spend(at - start + 1)
        return tokens

    def _best_path(self, starts: list[int], tokens: list[int]) -> list[int]:
        """The way back from the end."""
        path: list[int] = []
        at = len(starts) - 1
        while at > 0:
            if tokens[at] != self._unknown or not path or path[-1] != self._unknown:
                path.append(tokens[at])
            at = starts[at]
        path.reverse()
        return path

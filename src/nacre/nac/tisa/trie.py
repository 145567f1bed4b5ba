"""Texts by their characters."""

from __future__ import annotations

from collections.abc import Iterable

_NONE = -1


class Trie:
    """Tokens by their characters, so that all that begin at a place are found in one walk."""

    def __init__(self, tokens: Iterable[tuple[str, int]]) -> None:
        self.ways: list[dict[str, int]] = [{}]  # from a node by a character to a node
        self.ids: list[int] = [_NONE]  # of the token that ends at a node
        for token, index in tokens:
            node = 0
            for character in token:
                following = self.ways[node].get(character)
                if following is None:
                    following = self.ways[node][character] = len(self.ways)
                    self.ways.append({})
                    self.ids.append(_NONE)
                node = following
            self.ids[node] = index

    def longest(self, text: str, start: int) -> tuple[int, int]:
        """The end and id of the longest token at a place; id -1: there is none."""
        node, best = 0, (start, _NONE)
        for at in range(start, len(text)):
            node = self.ways[node].get(text[at], _NONE)
            if node < 0:
                break
            if self.ids[node] >= 0:
                best = at + 1, self.ids[node]
        return best

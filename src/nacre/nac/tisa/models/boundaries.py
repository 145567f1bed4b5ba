"""Places in a fragment that no merge of BPE can cross: what stands between them is apart.

A token covers two letters that are neighbours only if they are neighbours in its text. A fragment
may be a whole book where nothing cuts it before (SentencePiece's BPE); its words repeat, and each
is merged once.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from functools import cached_property
from itertools import compress, pairwise
from operator import add


class MergeBoundaries:
    """Finds them; `merged` are the texts of all tokens that merges make."""

    def __init__(self, letters: Container[str], merged: Collection[str]) -> None:
        self._letters = letters
        self._merged = merged

    @cached_property
    def _neighbours(self) -> set[str]:
        """Pairs of letters in a token: made when the first long fragment comes."""
        return {text[at : at + 2] for text in self._merged for at in range(len(text) - 1)}

    def parts(self, fragment: str) -> list[str]:
        """What merges apart; letters in a row that are no tokens stay together."""
        neighbours = self._neighbours
        pairs = map(add, fragment, fragment[1:])
        cuts = list(compress(range(1, len(fragment)), (pair not in neighbours for pair in pairs)))
        unknown = {letter for letter in set(fragment) if letter not in self._letters}
        if unknown:
            cuts = [at for at in cuts if not {fragment[at - 1], fragment[at]} <= unknown]
        return [fragment[start:end] for start, end in pairwise((0, *cuts, len(fragment)))]


def boundaries_of(
    letters: Container[str], merges: Sequence[tuple[str, str]], opaque: Container[str]
) -> MergeBoundaries | None:
    """None where a merge has a part that is not made of its letters, such as a byte."""
    if any(part in opaque for pair in merges for part in pair):
        return None
    return MergeBoundaries(letters, [first + second for first, second in merges])

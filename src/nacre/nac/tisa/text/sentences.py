"""Texts as SentencePiece normalises them, with the places that it gives to their characters."""

from __future__ import annotations

from itertools import pairwise
from typing import cast

from nacre.nac.tisa.budget import Budget
from nacre.nac.tisa.instructions import (
    MARKS_END,
    MARKS_START,
    SINGLE_SPACES,
    WRITES_MARKS,
    Instruction,
    SoughtToken,
)
from nacre.nac.tisa.text.charsmap import Charsmap
from nacre.nac.tisa.text.spans import Span, Spans
from nacre.nac.tisa.trie import Trie

MARK = "\u2581"
Fragment = tuple[str, int | None, Spans]


class SentenceText:
    """SENTENCE_TEXT."""

    def __init__(self, instruction: Instruction) -> None:
        options, symbols, table = cast(
            tuple[int, tuple[SoughtToken, ...], bytes], instruction.operands
        )
        self._single_spaces = bool(options & SINGLE_SPACES)
        self._marks_start = bool(options & MARKS_START)
        self._marks_end = bool(options & MARKS_END)
        self._space = MARK if options & WRITES_MARKS else " "
        self._table = Charsmap(table) if table else None
        self._symbols = Trie((symbol.text, symbol.id) for symbol in symbols)
        self._firsts = frozenset(symbol.text[0] for symbol in symbols)

    def __call__(self, fragments: list[Fragment], budget: Budget) -> list[Fragment]:
        """Every text that is no token yet."""
        changed: list[Fragment] = []
        for text, token, spans in fragments:
            if token is not None:
                changed.append((text, token, spans))
                continue
            budget.spend(2 * len(text))
            made, places = self._normalise(text)
            budget.hold(len(made))
            if made:
                kept = None if spans is None else _spans(spans, places)
                changed.append((made, None, kept))
        return changed

    def _normalise(self, text: str) -> tuple[str, list[int]]:
        """The new text, and where each of its characters begins in the old one, and the end."""
        at = self._leading_spaces(text)
        if at == len(text):
            return "", []
        made: list[str] = []
        places: list[int] = []
        if self._marks_start:
            made.append(self._space)
            places.append(at)
        after_space = self._single_spaces
        while at < len(text):
            part, end = self._prefix(text, at)
            if after_space:
                part = part.lstrip(" ")
            if part:
                made += part.replace(" ", self._space)
                places += [at] * len(part)
                after_space = self._single_spaces and part.endswith(" ")
            at = end
        return self._finish(made, places, at)

    def _leading_spaces(self, text: str) -> int:
        at = 0
        while self._single_spaces and at < len(text):
            part, end = self._prefix(text, at)
            if part != " ":
                break
            at = end
        return at

    def _finish(self, made: list[str], places: list[int], end: int) -> tuple[str, list[int]]:
        places.append(end)
        if self._single_spaces:
            while made and made[-1] == self._space:
                made.pop()
                places.pop()
        if self._marks_end:
            made.append(self._space)
            places.append(places[-1])
        return "".join(made), places

    def _prefix(self, text: str, at: int) -> tuple[str, int]:
        """What the next symbol, entry of the table or character becomes, and its end."""
        if text[at] in self._firsts:
            end, symbol = self._symbols.longest(text, at)
            if symbol >= 0:
                return text[at:end], end
        if self._table is None:
            return text[at], at + 1
        return self._table.longest(text, at) or (text[at], at + 1)


def _spans(spans: Spans, places: list[int]) -> list[Span]:
    """Every character reaches up to the next one."""
    if isinstance(spans, list):
        starts = [start for start, _ in spans]
        starts.append(spans[-1][1])
        old = [starts[at] for at in places]
    else:
        old = [(spans or 0) + at for at in places]
    return list(pairwise(old))

"""A text of which only places are known: every token where it stood, or about there.

Nodes say where they start and end. What is no node (brackets, commas, keys) stands between them: a
key before its value, all else as far to the left as there is room.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain

from msgspec import Struct

from nacre.base.source import Source
from nacre.nem.bytecode.document import Content
from nacre.nem.bytecode.foreign import Foreign
from nacre.nem.bytecode.tree_writer import tree_columns
from nacre.nem.syntax.ast import Document, Loop
from nacre.nem.syntax.lexer import LOOKAHEAD, tokenize
from nacre.nem.syntax.parser import ParseResult

_WORD = re.compile(r"\w", re.ASCII)
# How far from their neighbours tokens are looked for, and among how many parts: texts of strangers
# may have no room for any of them.
_NEAR, _FAR, _FEW = 3, 1000, 8


class _Token(Struct, frozen=True):
    text: str
    start: int  # in the canonical text
    node: int  # the innermost around it

    @property
    def end(self) -> int:
        return self.start + len(self.text)


Extent = tuple[int, int]  # from where to where


def reconstruct(content: Content, there: ParseResult, foreign: Foreign) -> str:
    """The text that a document was made of, as far as is known of it; blanks for the rest."""
    page = _Page(foreign, there)
    nodes, moved = (_extents(tree) for tree in (content.document, there.document))
    tokens = _tokens(content.text, nodes)
    places: list[int | None] = [_fixed(token, nodes, moved) for token in tokens]
    for token, place in zip(tokens, places, strict=True):
        if place is not None:
            page.put(token.text, place)
    _place_keys(tokens, places, page)
    loose = _place_others(tokens, places, moved, _ends_of_parts(nodes, moved), page)
    _put_in_order(loose, page)
    return page.text


def _extents(document: Document) -> list[Extent]:
    """Where nodes stand; a loop is its header."""
    nodes = tree_columns(document).nodes
    return [(n.start, n.header_end if isinstance(n, Loop) else n.end) for n in nodes]


def _ends_of_parts(nodes: Sequence[Extent], moved: Sequence[Extent]) -> dict[int, list[int]]:
    """By number of a node: where its parts end in the other text, in the order there."""
    ends: dict[int, list[int]] = {}
    above: list[int] = []
    for number in sorted(range(len(nodes)), key=lambda at: (nodes[at][0], -nodes[at][1])):
        while above and nodes[above[-1]][1] < nodes[number][1]:
            above.pop()
        if above:
            ends.setdefault(above[-1], []).append(moved[number][1])
        above.append(number)
    return {number: sorted(found) for number, found in ends.items()}


def _tokens(text: str, nodes: Sequence[Extent]) -> list[_Token]:
    """The tokens of the canonical text, each with the innermost node around it."""
    found = tokenize(Source("", text))
    order = sorted(range(len(nodes)), key=lambda at: (nodes[at][0], -nodes[at][1]))
    open_: list[int] = []
    tokens: list[_Token] = []
    at = 0
    starts = found.starts[:-LOOKAHEAD]
    for start, token in zip(starts, found.texts[: len(starts)], strict=True):
        while at < len(order) and nodes[order[at]][0] <= start:
            open_.append(order[at])
            at += 1
        while open_ and nodes[open_[-1]][1] < start + len(token):
            open_.pop()
        tokens.append(_Token(token, start, open_[-1] if open_ else 0))
    return tokens


def _fixed(token: _Token, nodes: Sequence[Extent], moved: Sequence[Extent]) -> int | None:
    """Where a token stands that begins or ends its node."""
    (start, end), (there, until) = nodes[token.node], moved[token.node]
    if token.start == start and len(token.text) <= until - there:
        return there
    return until - len(token.text) if token.end == end else None


class _Page:
    """Letters at their places; comments and the ends of lines are there from the start."""

    def __init__(self, foreign: Foreign, there: ParseResult) -> None:
        self._letters = [" "] * foreign.size
        for start in foreign.line_starts.tolist()[1:]:
            self._letters[start - 1] = "\n"
        for comment in there.comments:
            self._letters[comment.start : comment.end] = comment.text

    @property
    def text(self) -> str:
        return "".join(self._letters)

    def put(self, text: str, start: int) -> None:
        self._letters[start : start + len(text)] = text

    def fits(self, text: str, start: int) -> bool:
        """Whether there is nothing yet, and the text would not grow together with a word."""
        end = start + len(text)
        if start < 0 or end > len(self._letters) or self._letters[start:end] != [" "] * len(text):
            return False
        before, behind = self._letters[max(start - 1, 0) : start], self._letters[end : end + 1]
        return not (_are_joined(before, text[0]) or _are_joined(behind, text[-1]))


def _are_joined(beside: list[str], letter: str) -> bool:
    return bool(beside and _WORD.match(beside[0]) and _WORD.match(letter))


def _place_keys(tokens: Sequence[_Token], places: list[int | None], page: _Page) -> None:
    """`size=` stands right before its value."""
    for at in range(len(tokens) - 2, 0, -1):
        behind = places[at + 1]
        is_key = tokens[at].text == "=" and places[at] is None and places[at - 1] is None
        if not is_key or behind is None:
            continue
        for one in (at, at - 1):
            text = tokens[one].text
            nearest = behind - len(text)
            ways = range(nearest, nearest - _NEAR, -1)
            place = next((way for way in ways if page.fits(text, way)), None)
            if place is None:
                break
            page.put(text, place)
            places[one] = behind = place


def _place_others(
    tokens: Sequence[_Token],
    places: list[int | None],
    moved: Sequence[Extent],
    behind_parts: Mapping[int, Sequence[int]],
    page: _Page,
) -> dict[int, list[tuple[int, str]]]:
    """Put the rest where there is room; the single letters among them, by their node."""
    loose: dict[int, list[tuple[int, str]]] = {}
    at = 0
    for number, token in enumerate(tokens):
        first, last = moved[token.node]
        place = places[number]
        if place is None:
            # Behind what comes before it, or, where parts have another order, behind any part.
            begin, room = max(at, first), last - len(token.text) + 1
            parts = behind_parts.get(token.node, ())[:_FEW]
            ways = chain(
                range(begin, min(begin + _FAR, room)),
                *(range(end, min(end + _NEAR, room)) for end in parts),
            )
            place = next((way for way in ways if page.fits(token.text, way)), None)
            if place is None:
                continue
            page.put(token.text, place)
            if len(token.text) == 1:
                loose.setdefault(token.node, []).append((place, token.text))
        at = place + len(token.text)
    return loose


def _put_in_order(loose: dict[int, list[tuple[int, str]]], page: _Page) -> None:
    """Parts that were written in another order have what is between them in the usual one."""
    for found in loose.values():
        places = sorted(place for place, _ in found)
        for place, (_, text) in zip(places, found, strict=True):
            page.put(text, place)

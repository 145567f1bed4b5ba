"""The table of the grammar, read anew: a recogniser and a writer of sentences that know only it.

Nothing is shared with the parser but the tokens. A node of a right-hand side is a tuple: its kind,
and what it is made of.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from random import Random
from typing import Any

from nacre.base.source import Source
from nacre.nem.spec.grammar import GRAMMAR, TERMINALS
from nacre.nem.spec.opcodes import OPCODES
from nacre.nem.syntax.lexer import tokenize

Node = tuple[Any, ...]

SYMBOL = re.compile(r'\s*("[^"]*"|[A-Za-z_]\w*|&,|[|()?*&-])')
PATTERNS = {t.name: re.compile(t.pattern) for t in TERMINALS if t.pattern}
COMPUTES = sorted(
    f"{name}.{form}" for name in set(OPCODES) - {"transfer", "store"} for form in ("async", "sync")
)
TYPE_WORDS = ("elem", "shape", "layout", "quant")
STATEMENTS = ("let", "const")  # those that with the name behind them could be two statements


# Right-hand sides


def read(definition: str) -> Node:
    """The node that a right-hand side describes."""
    symbols = SYMBOL.findall(definition)
    assert "".join(symbols) == re.sub(r"\s(?=[^\"]*(?:\"[^\"]*\"[^\"]*)*$)", "", definition)
    node = _read_choice(symbols)
    assert not symbols, definition
    return node


def _read_choice(symbols: list[str]) -> Node:
    choices = [_read_any_order(symbols)]
    while symbols[:1] == ["|"]:
        symbols.pop(0)
        choices.append(_read_any_order(symbols))
    return choices[0] if len(choices) == 1 else ("choice", *choices)


def _read_any_order(symbols: list[str]) -> Node:
    parts, mark = [_read_sequence(symbols)], ""
    while symbols and symbols[0] in ("&", "&,"):
        mark = symbols.pop(0)
        parts.append(_read_sequence(symbols))
    return parts[0] if len(parts) == 1 else ("any order", mark[1:], *parts)


def _read_sequence(symbols: list[str]) -> Node:
    parts = []
    while symbols and symbols[0] not in ("|", ")", "&", "&,"):
        part = _read_item(symbols)
        while symbols and symbols[0] in ("?", "*", "-"):
            kind = symbols.pop(0)
            part = (kind, part, _read_item(symbols)) if kind == "-" else (kind, part)
        parts.append(part)
    return parts[0] if len(parts) == 1 else ("sequence", *parts)


def _read_item(symbols: list[str]) -> Node:
    symbol = symbols.pop(0)
    if symbol == "(":
        node = _read_choice(symbols)
        assert symbols.pop(0) == ")"
        return node
    if symbol.startswith('"'):
        return ("word", symbol[1:-1])
    return ("terminal" if symbol.isupper() else "production", symbol)


RULES = {p.name: read(p.definition) for rows in GRAMMAR.values() for p in rows}


def nodes_in(node: Node) -> Iterator[Node]:
    """A node and all that it is made of."""
    yield node
    for part in node[1:]:
        if isinstance(part, tuple):
            yield from nodes_in(part)


# Recognising


class Text:
    """Words of a text, and whether the table derives them."""

    def __init__(self, text: str) -> None:
        tokens = tokenize(Source("text.nem", text))
        self.words = tokens.texts
        self.count = sum(map(bool, self.words))
        self.first_of_line = [
            i == 0 or "\n" in text[tokens.starts[i - 1] : tokens.starts[i]]
            for i in range(self.count)
        ]
        self._broken = bool(tokens.diagnostics)
        self._known: dict[tuple[str, int], frozenset[int]] = {}

    def is_sentence(self, rule: str = "document") -> bool:
        """Whether the whole text is one."""
        return not self._broken and self.count in self._production(rule, 0)

    def _production(self, name: str, at: int) -> frozenset[int]:
        known = self._known.get((name, at))
        if known is None:
            known = self._known[name, at] = frozenset(self.ends(RULES[name], at))
        return known

    def ends(self, node: Node, at: int) -> Iterable[int]:
        """Every place at which what the node describes may end, when it begins at `at`."""
        kind, first = node[0], node[1]
        if kind == "word":
            return (at + 1,) if self.words[at] == first else ()
        if kind == "production":
            return self._production(first, at)
        if kind == "terminal":
            return self._terminal(first, at)
        if kind == "choice":
            return {end for part in node[1:] for end in self.ends(part, at)}
        if kind == "sequence":
            return self._sequence(node[1:], at)
        if kind == "?":
            return {at, *self.ends(first, at)}
        if kind == "*":
            return self._repeated(first, at)
        if kind == "-":
            return set(self.ends(first, at)) - set(self.ends(node[2], at))
        return self._any_order(first, node[2:], at)

    def _sequence(self, parts: Sequence[Node], at: int) -> set[int]:
        places = {at}
        for part in parts:
            places = {end for place in places for end in self.ends(part, place)}
        return places

    def _repeated(self, part: Node, at: int) -> set[int]:
        reached, edge = {at}, {at}
        while edge:
            edge = {end for place in edge for end in self.ends(part, place)} - reached
            reached |= edge
        return reached

    def _any_order(self, mark: str, parts: Sequence[Node], at: int) -> set[int]:
        """Each part once, in any order; an optional one may be absent, and its mark with it."""
        found = {at} if all(part[0] == "?" for part in parts) else set()
        for index, part in enumerate(parts):
            rest = (*parts[:index], *parts[index + 1 :])
            for end in self.ends(part[1] if part[0] == "?" else part, at):
                found |= self._behind(mark, rest, end)
        return found

    def _behind(self, mark: str, rest: Sequence[Node], at: int) -> set[int]:
        if not rest:
            return {at}
        if not mark:
            return self._any_order(mark, rest, at)
        stop = {at} if all(part[0] == "?" for part in rest) else set()
        return stop | (self._any_order(mark, rest, at + 1) if self.words[at] == mark else set())

    def _terminal(self, name: str, at: int) -> tuple[int, ...]:
        if name == "UNTYPED":
            return (at,) if is_untyped(self.words, at) else ()
        return (at + 1,) if self._is_terminal(name, at) else ()

    def _is_terminal(self, name: str, at: int) -> bool:
        word, following = self.words[at], self.words[at + 1]
        if name == "COMPUTE":
            return word in COMPUTES
        if PATTERNS[name].fullmatch(word) is None:
            return False
        if name == "ID" and word == "endloop":
            return following == "="
        begins = word in STATEMENTS and is_name(following) and self.words[at + 2] == "="
        waits = word == "wait" and following == "("
        return not (name == "ID" and (begins or waits) and self.first_of_line[at])


def is_name(word: str) -> bool:
    """Whether a word looks like a name."""
    return PATTERNS["ID"].fullmatch(word) is not None


def is_untyped(words: Sequence[str], at: int) -> bool:
    """Whether no type stands at a place: there may be a statement that declares such a name."""
    word, equals, value, behind = words[at : at + 4]
    if equals != "=" or not (word in TYPE_WORDS or (word == "type" and is_name(value))):
        return True
    return (value == "region" and behind == "(") or value.endswith((".async", ".sync"))


# Sentences

# Names that could be something else; `endloop` and those that begin statements stand apart.
WORDS = (
    "in", "out", "type", "elem", "shape", "layout", "strides", "quant", "mod", "deps", "region",
    "size", "align", "dst", "src", "relu", "transfer", "true", "variants", "conformance", "extends",
    "on", "L1", "i8", "NMU", "per_tensor", "scale", "required", "wait", "loop", "let", "const",
    "buffer", "program", "include", "device", "type_family",
)  # fmt: skip
DEEP = 14  # from here on what may be left out is, and the shortest choice is taken


class Writer:
    """Draws sentences of the table."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.words: list[str] = []
        self._untyped: list[int] = []

    def sentence(self, rule: str) -> str | None:
        """A sentence on one line; None where a type would begin that was not meant."""
        self.words, self._untyped = [], []
        self._write(RULES[rule], 0)
        padded = [*self.words, *([""] * 4)]
        if not all(is_untyped(padded, at) for at in self._untyped):
            return None
        return " ".join(self.words)

    def _write(self, node: Node, depth: int) -> None:
        kind, first = node[0], node[1]
        if kind == "word":
            self.words.append(first)
        elif kind == "production":
            self._write(RULES[first], depth + 1)
        elif kind == "terminal":
            self._terminal(first)
        elif kind == "choice":
            self._choose(node[1:], depth)
        elif kind == "sequence":
            for part in node[1:]:
                self._write(part, depth)
        elif kind in ("?", "*"):
            most = {"?": 2, "*": 3}[kind] if depth <= DEEP else 1
            for _ in range(self.random.randrange(most)):
                self._write(first, depth)
        elif kind == "-":
            self._write_other(first, node[2], depth)
        else:
            self._any_order(first, node[2:], depth)

    def _choose(self, choices: Sequence[Node], depth: int) -> None:
        best = sorted(choices, key=least_words)
        self._write(best[0] if depth > DEEP else self.random.choice(choices), depth)

    def _write_other(self, node: Node, refused: Node, depth: int) -> None:
        words = {part[1] for part in nodes_in(_resolved(refused)) if part[0] == "word"}
        start = len(self.words)
        self._write(node, depth)
        while self.words[start] in words:
            del self.words[start:]
            self._write(node, depth)

    def _any_order(self, mark: str, parts: Sequence[Node], depth: int) -> None:
        kept = [p for p in parts if p[0] != "?" or (depth <= DEEP and self.random.random() < 0.5)]
        self.random.shuffle(kept)
        for index, part in enumerate(kept):
            if index and mark:
                self.words.append(mark)
            self._write(part[1] if part[0] == "?" else part, depth)

    def _terminal(self, name: str) -> None:
        if name == "UNTYPED":
            self._untyped.append(len(self.words))
            return
        plain = f"X_{self.random.randrange(10**6)}"
        words = {
            "ID": [plain, plain, plain, self.random.choice(WORDS)],
            "PAIR": [f"gemm.{plain}"],
            "DOTTED": [f"gemm.{plain}", f"gemm.float.{plain}"],
            "INT": ["0", "7", "64"],
            "FLOAT": ["0.5", "1.0e-5"],
            "STRING": ['"npm_lite.nem"', r'"a \"quoted\" \\ one"'],
            "COMPUTE": COMPUTES,
        }
        self.words.append(self.random.choice(words[name]))


def _resolved(node: Node) -> Node:
    return RULES[node[1]] if node[0] == "production" else node


@cache
def least_words(node: Node, within: frozenset[str] = frozenset()) -> float:
    """How many words a node takes at least."""
    kind, first = node[0], node[1]
    if kind in ("word", "terminal"):
        return 0 if first == "UNTYPED" else 1
    if kind == "production":
        return float("inf") if first in within else least_words(RULES[first], within | {first})
    if kind in ("?", "*"):
        return 0
    if kind == "choice":
        return min(least_words(part, within) for part in node[1:])
    if kind == "-":
        return least_words(first, within)
    return sum(least_words(part, within) for part in node[1:] if isinstance(part, tuple))


# Texts that are nearly right


def mutants(text: str, random: Random, count: int) -> Iterator[str]:
    """The text with a word taken out, doubled, or exchanged for its neighbour or another word."""
    tokens = tokenize(Source("text.nem", text))
    words = [word for word in tokens.texts if word]
    if len(words) < 2:
        return
    ends = [0, *(tokens.starts[i] + len(w) for i, w in enumerate(words))]
    gaps = [text[end : tokens.starts[i]] for i, end in enumerate(ends[:-1])]
    for _ in range(count):
        yield _written(_mutated(list(zip(gaps, words, strict=True)), random))


def _mutated(pieces: list[tuple[str, str]], random: Random) -> list[tuple[str, str]]:
    at = random.randrange(len(pieces) - 1)
    other = random.randrange(len(pieces))
    gap, word = pieces[at]
    kind = random.choice(["delete", "double", "swap", "replace", "move"])
    if kind == "delete":
        del pieces[at]
    elif kind == "double":
        pieces.insert(at, (gap, word))
    elif kind == "swap":
        pieces[at], pieces[at + 1] = (gap, pieces[at + 1][1]), (pieces[at + 1][0], word)
    elif kind == "replace":
        pieces[at] = (gap, pieces[other][1])
    else:
        pieces.insert(other, pieces.pop(at))
    return pieces


def _written(pieces: list[tuple[str, str]]) -> str:
    """Words with what stood before each; a blank keeps two of them apart that stood alone."""
    return "".join(f"{gap or ' '}{word}" for gap, word in pieces)

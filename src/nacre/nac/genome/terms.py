"""Patterns as text: `act(norm?(conv(x)))` and what it means.

- `conv(x)`: an operation with this word, and terms for the operands that a run computes
- `norm?(x)`: the same, or nothing: then `x` stands in its place
- `x`: any value; the same name is the same value
- `y:add(x, z)`: a term whose value gets a name
- `body(x)`: anything with a layer that is computed from `x` and nothing else
- `Attention(q, k, v)`: another pattern of the library, with terms for its inputs
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

BODY = "body"
_TOKEN = re.compile(r"\s*([A-Za-z][A-Za-z0-9]*|[():,?])")


@dataclass(frozen=True)
class Term:
    """A term; without arguments it is a variable."""

    word: str  # empty of a variable
    arguments: tuple[Term, ...] = ()
    name: str = ""
    is_optional: bool = False

    def variables(self) -> tuple[str, ...]:
        """The names of values that are inputs, in the order in which they are met."""
        return tuple(dict.fromkeys(self._variables()))

    def _variables(self) -> Iterator[str]:
        if not self.word:
            yield self.name
        named = {term.name for term in self.inner() if term.word and term.name}
        for argument in self.arguments:
            yield from (v for v in argument._variables() if v not in named)

    def inner(self) -> Iterator[Term]:
        """The term and all terms in it."""
        yield self
        for argument in self.arguments:
            yield from argument.inner()


def parse_term(text: str) -> Term:
    """The term of a text; ValueError for what is none."""
    tokens = _tokens(text)
    term, rest = _term(tokens)
    if rest:
        raise ValueError(f"`{text}` goes on behind its end: {' '.join(rest)}")
    return term


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    at = 0
    while at < len(text.rstrip()):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ValueError(f"`{text}` has an unknown character at {at}")
        tokens.append(found[1])
        at = found.end()
    return tokens


def _term(tokens: list[str]) -> tuple[Term, list[str]]:
    if not tokens or not tokens[0][0].isalpha():
        raise ValueError(f"expected a name, found {tokens[:1]}")
    head, rest = tokens[0], tokens[1:]
    if rest[:1] == [":"]:
        inner, rest = _term(rest[1:])
        return Term(inner.word, inner.arguments, head, inner.is_optional), rest
    is_optional = rest[:1] == ["?"]
    rest = rest[is_optional:]
    if rest[:1] != ["("]:
        return Term("", name=head), rest
    arguments: list[Term] = []
    while True:
        argument, rest = _term(rest[1:])
        arguments.append(argument)
        if rest[:1] == [")"]:
            return Term(head, tuple(arguments), is_optional=is_optional), rest[1:]
        if rest[:1] != [","]:
            raise ValueError(f"expected `,` or `)` behind an argument of `{head}`")

"""Names and what they stand for, in scopes that nest like the loops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from nacre.base.rules import Rule
from nacre.nem.spec.rules.constants import CST01, CST09, CST10, CST11, CST12
from nacre.nem.spec.rules.names import NAM02, NAM05, TOK02
from nacre.nem.syntax.ast import (
    Broken,
    BufferDecl,
    Compute,
    ConstDecl,
    Copy,
    LetDecl,
    NameRef,
    RegionDecl,
    Stmt,
)

Kind = Literal["const", "buffer", "region", "let", "token", "loop", "unknown"]

_WORDS = {
    "const": "a constant",
    "buffer": "a buffer",
    "region": "a region",
    "let": "a `let`",
    "token": "a token",
    "loop": "a loop variable",
    "unknown": "a name",
}


@dataclass(slots=True)
class Symbol:
    """A declared name. `value` is what resolving its declaration gave."""

    kind: Kind
    name: str
    node: NameRef
    value: object = None

    @property
    def description(self) -> str:
        """`a buffer`, as messages put it."""
        return _WORDS[self.kind]


@dataclass(slots=True)
class Scope:
    """The names of a program or of a loop's body."""

    parent: Scope | None = None
    names: dict[str, Symbol] = field(default_factory=dict)
    upcoming: dict[str, Symbol] = field(default_factory=dict)  # of this body, not yet declared

    def chain(self) -> Iterator[Scope]:
        """This scope and those around it, from the inside out."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def find(self, name: str) -> Symbol | None:
        """The symbol that a name means here."""
        scope: Scope | None = self
        while scope is not None:
            symbol = scope.names.get(name)
            if symbol is not None:
                return symbol
            scope = scope.parent
        return None

    def find_upcoming(self, name: str) -> Symbol | None:
        """The symbol that a name will mean further down."""
        return next((s.upcoming[name] for s in self.chain() if name in s.upcoming), None)

    def visible_names(self, *kinds: Kind) -> Iterator[str]:
        """The names that can be used here, of the kinds asked for."""
        return (s.name for c in self.chain() for s in c.names.values() if s.kind in kinds)


def declared_symbol(statement: Stmt) -> Symbol | None:
    """What a statement declares in its own scope."""
    match statement:
        case ConstDecl(name=name):
            return Symbol("const", name.name, name)
        case BufferDecl(name=name):
            return Symbol("buffer", name.name, name)
        case RegionDecl(name=name):
            return Symbol("region", name.name, name)
        case LetDecl(name=name):
            return Symbol("let", name.name, name)
        case Copy(token=NameRef() as token) | Compute(token=NameRef() as token):
            return Symbol("token", token.name, token)
        case Broken(declares=NameRef() as name):
            return Symbol("unknown", name.name, name)
        case _:
            return None


_CONST_RULES = {
    "const": CST01,
    "buffer": CST09,
    "region": CST10,
    "let": CST10,
    "token": CST11,
    "loop": CST12,
}


def collision_rule(new: Symbol, old: Symbol, same_scope: bool) -> Rule:
    """Which rule two declarations of one name break."""
    if new.kind == "const":
        return _CONST_RULES[old.kind]
    if old.kind == "const":
        return _CONST_RULES[new.kind]
    if new.kind == old.kind == "loop":
        return NAM05
    if new.kind == old.kind == "token" and same_scope:
        return TOK02
    return NAM02

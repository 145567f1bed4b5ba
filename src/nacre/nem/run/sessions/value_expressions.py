"""Expressions about a session: `i * tile + 3`, `Y[0, 0]`, `max(Y)`; parsed, never run as code.

Names are loop variables, constants, `let`s of integers, regions and buffers. Integers follow the
language: `/` truncates and `mod` takes the sign of the dividend.
"""

from __future__ import annotations

import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from nacre.base.digits import is_digits
from nacre.base.excerpt import backquote
from nacre.base.terms import apply
from nacre.nem.model.arithmetic import apply_to_floats
from nacre.nem.run.memory.regions import UnknownNameError
from nacre.nem.run.sessions.references import Reference, parse_reference
from nacre.nem.run.sessions.statistics import STATISTICS, Elements

Number = int | float

_MOST_CHARACTERS = 4096
_MOST_DEPTH = 40
_TOKEN = re.compile(
    r"""\s*(?: [0-9]+(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?)?
    |   [^\W0-9]\w*\s*(?:\[[^\[\]]*\]\s*){0,2}  # a name with its brackets
    |   == | != | <= | >= | [-+*/()<>] )""",
    re.VERBOSE,
)
_COMPARISONS: dict[str, Callable[[Number, Number], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_WORDS = ("and", "or", "mod")


class Values(Protocol):
    """Where the numbers of an expression come from."""

    def is_number(self, reference: Reference) -> bool:
        """Whether a reference is a loop variable, constant or `let` of a number."""

    def number(self, name: str) -> Number | None:
        """Its value; None where it has none now."""

    def elements(self, reference: Reference | None, *, one: bool) -> Elements | None:
        """The elements of a region, or of the one that is watched; None where there are none."""


class Node(ABC):
    """A part of an expression."""

    @abstractmethod
    def value(self, values: Values) -> Number | None:
        """Its value; None where it has none at this moment."""

    def parts(self) -> Iterator[Node]:
        """It and everything inside."""
        yield self


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A number."""

    number: Number

    def value(self, values: Values) -> Number | None:
        """The number."""
        return self.number


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A loop variable, a constant, or the one element of a region."""

    reference: Reference

    def value(self, values: Values) -> Number | None:
        """The number, or the element."""
        if values.is_number(self.reference):
            return values.number(self.reference.name)
        elements = values.elements(self.reference, one=True)
        if elements is None or not elements.values.size:
            return None
        value: Number = elements.wide.reshape(-1)[0].item()
        return value


@dataclass(frozen=True, slots=True)
class Statistic(Node):
    """`max(Y)`; without a region that of the one that is watched."""

    name: str
    reference: Reference | None

    def value(self, values: Values) -> Number | None:
        """What the elements give."""
        elements = values.elements(self.reference, one=False)
        return None if elements is None else STATISTICS[self.name](elements)


@dataclass(frozen=True, slots=True)
class Operation(Node):
    """Two operands."""

    op: str
    left: Node
    right: Node

    @property
    def divides_by_zero(self) -> bool:
        """Whether it has no value whatever the names in it are."""
        is_zero = isinstance(self.right, Literal) and self.right.number == 0
        return is_zero and self.op in ("/", "mod")

    def value(self, values: Values) -> Number | None:
        """As the language computes integers, and as f64 otherwise."""
        left, right = self.left.value(values), self.right.value(values)
        if left is None or right is None:
            return None
        if right == 0 and self.op in ("/", "mod"):
            return None
        if isinstance(left, int) and isinstance(right, int):
            return apply(self.op, left, right)
        try:
            return apply_to_floats(self.op, float(left), float(right))
        except OverflowError:  # an integer that no float holds
            return None

    def parts(self) -> Iterator[Node]:
        """It and everything inside."""
        yield self
        yield from self.left.parts()
        yield from self.right.parts()


@dataclass(frozen=True, slots=True)
class Comparison:
    """`Y[0, 0] > 3`; false where a side has no value."""

    op: str
    left: Node
    right: Node

    def holds(self, values: Values) -> bool:
        """Whether it holds now."""
        left, right = self.left.value(values), self.right.value(values)
        return left is not None and right is not None and _COMPARISONS[self.op](left, right)


@dataclass(frozen=True, slots=True)
class Condition:
    """Comparisons joined by `and`."""

    text: str
    comparisons: tuple[Comparison, ...]

    def holds(self, values: Values) -> bool:
        """Whether it holds now."""
        return all(part.holds(values) for part in self.comparisons)

    def nodes(self) -> Iterator[Node]:
        """Every part of both sides of every comparison."""
        for part in self.comparisons:
            yield from part.left.parts()
            yield from part.right.parts()


def parse_expression(text: str, is_name: Callable[[str], bool]) -> Node:
    """An expression; UnknownNameError says why a text is none."""
    parser = _Parser(text, "expression; write for example `i * 4` or `max(Y)`", is_name)
    node = parser.sum()
    parser.expect_end()
    return node


def parse_condition(text: str, is_name: Callable[[str], bool]) -> Condition:
    """A condition; UnknownNameError says why a text is none."""
    parser = _Parser(text, "condition; write for example `i == 3 and Y[0, 0] > 2`", is_name)
    parts = parser.comparisons()
    parser.expect_end()
    return Condition(text.strip(), parts)


class _Parser:
    """One text, read from left to right; nesting is bounded."""

    def __init__(self, text: str, wanted: str, is_name: Callable[[str], bool]) -> None:
        self._text, self._wanted, self._is_name = text.strip(), wanted, is_name
        if len(text) > _MOST_CHARACTERS:
            raise self._syntax_error()
        self._tokens: list[str] = []
        self._at, self._depth, at = 0, 0, 0
        while at < len(self._text):
            match = _TOKEN.match(self._text, at)
            if match is None:
                raise self._syntax_error()
            self._tokens.append(match[0].strip())
            at = match.end()

    def _syntax_error(self) -> UnknownNameError:
        return UnknownNameError(f"{backquote(self._text)} is no {self._wanted}")

    @property
    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def accept(self, *tokens: str) -> str | None:
        """The next token, where it is one of these."""
        if self._next not in tokens or not self._next:
            return None
        self._at += 1
        return self._tokens[self._at - 1]

    def expect_end(self) -> None:
        """Nothing may follow."""
        if self._next:
            raise self._syntax_error()

    def comparisons(self) -> tuple[Comparison, ...]:
        """Comparisons joined by `and`."""
        parts = [self._comparison()]
        while self.accept("and"):
            parts.append(self._comparison())
        return tuple(parts)

    def _comparison(self) -> Comparison:
        left = self.sum()
        op = self.accept(*_COMPARISONS)
        if op is None:
            raise self._syntax_error()
        return Comparison(op, left, self.sum())

    def sum(self) -> Node:
        """Products that are added."""
        node = self._product()
        while op := self.accept("+", "-"):
            node = Operation(op, node, self._product())
        return node

    def _product(self) -> Node:
        node = self._operand()
        while op := self.accept("*", "/", "mod"):
            node = Operation(op, node, self._operand())
        return node

    def _operand(self) -> Node:
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise UnknownNameError(
                f"{backquote(self._text)} is nested more than {_MOST_DEPTH} deep"
            )
        node = self._unary()
        self._depth -= 1
        return node

    def _unary(self) -> Node:
        if self.accept("-"):
            if self.accept(str(1 << 63)):  # alone it does not fit
                return Literal(-(1 << 63))
            return Operation("-", Literal(0), self._operand())
        if self.accept("("):
            node = self.sum()
            if not self.accept(")"):
                raise self._syntax_error()
            return node
        token = self._next
        self._at += 1
        if is_digits(token[:1]):
            return _literal(token)
        reference = parse_reference(token) if token else None
        if reference is None or token in _WORDS:
            raise self._syntax_error()
        return self._name_node(reference)

    def _name_node(self, reference: Reference) -> Node:
        if not self.accept("("):
            is_statistic = reference.name in STATISTICS and not reference.groups
            if is_statistic and not self._is_name(reference.name):
                return Statistic(reference.name, None)
            return Name(reference)
        if reference.name not in STATISTICS or reference.groups:
            known = ", ".join(STATISTICS)
            raise UnknownNameError(f"no function {backquote(reference.text)}; there are {known}")
        inner = parse_reference(self._next) if self._next else None
        self._at += 1
        if inner is None or not self.accept(")"):
            raise self._syntax_error()
        return Statistic(reference.name, inner)


def _literal(token: str) -> Literal:
    if not is_digits(token):
        return Literal(float(token))
    number = int(token) if len(token) <= 19 else 1 << 63
    if number >= 1 << 63:
        raise UnknownNameError(f"{backquote(token)} does not fit into 64 bits")
    return Literal(number)

"""Terms over loop variables as terms over the counters of repeats, which begin at 0."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.base.terms import LoopVariable, Operation, Term, apply, fits_int64, operation
from nacre.nem.model.program import Loop
from nacre.nem.plan.columns import as_term
from nacre.tcb.image import Operand, counter

# Operands of one key are one: the id of their offset, their buffer, ids of form and quantisation.
OperandKey = tuple[int, int, int, int]


def simplify(op: str, left: Term, right: Term) -> Term:
    """An operation, worked out where it can be."""
    if type(right) is int and right > 1 and type(left) is not int:  # which is most of them
        return Operation(op, left, right, 1 + left.size if type(left) is Operation else 1)
    if isinstance(left, int) and isinstance(right, int) and (right or op not in ("/", "mod")):
        value = apply(op, left, right)
        if fits_int64(value):
            return value
    if (op in ("+", "-") and right == 0) or (op in ("*", "/") and right == 1):
        return left
    if (op == "+" and left == 0) or (op == "*" and left == 1):
        return right
    if (op == "*" and 0 in (left, right)) or (op == "mod" and right == 1):
        return 0
    return operation(op, left, right)


def add(*terms: Term) -> Term:
    """The sum of terms, numbers last."""
    symbolic, number = split_number(*terms)
    return add_number(symbolic, number)


def split_number(*terms: Term) -> tuple[Term, int]:
    """The sum of terms in two parts: that of those over counters, and a number."""
    number = 0
    symbolic: Term = 0
    for term in terms:
        if isinstance(term, int):
            number += term
        else:
            symbolic = simplify("+", symbolic, term)
    return symbolic, number


def add_number(symbolic: Term, number: int) -> Term:
    """A term and a number, as `add` writes their sum."""
    if type(symbolic) is int:  # which is most of them
        return symbolic + number
    if number > 1 and type(symbolic) is Operation:
        return Operation("+", symbolic, number, 1 + symbolic.size)
    if not number:
        return symbolic
    return simplify("+", symbolic, number) if number >= 0 else simplify("-", symbolic, -number)


class Counters:
    """The loops around a place, outermost first: their variables by counters."""

    def __init__(self, values: Sequence[Term] = ()) -> None:
        self._values = values
        self._terms: dict[int, tuple[Term, Term]] = {}  # by id, which they keep, as they become
        self.addresses: dict[tuple[int, int], Term] = {}  # by id of the offset, and by buffer
        self.operands: dict[OperandKey, Operand] = {}
        self.regions: dict[int, Operand] = {}  # operands of the type of a region, by its id
        self._inside: dict[Term, Counters] = {}  # by where a loop at this place begins

    def inside(self, loop: Loop) -> Counters:
        """Those of a loop at this place; loops that begin alike share them."""
        first = self.term(loop.first)
        found = self._inside.get(first)
        if found is None:
            value = simplify("+", counter(loop.depth), first)
            found = self._inside[first] = Counters((*self._values, value))
        return found

    def term(self, value: object) -> Term:
        """A term of the program over counters."""
        if type(value) is int:
            return value
        known = self._terms.get(id(value))  # equal terms of a program are one value, mostly
        if known is not None:
            return known[1]
        term = as_term(value)
        if term is None:
            raise ValueError("a part of a program with errors")
        found = self._replace(term)
        self._terms[id(value)] = (term, found)
        return found

    def _replace(self, term: Term) -> Term:
        if isinstance(term, LoopVariable):
            return self._values[term.depth]
        if isinstance(term, int):
            return term
        return simplify(term.op, self._replace(term.left), self._replace(term.right))

    def count(self, loop: Loop) -> Term:
        """How often a loop at this place repeats its body."""
        first, last = loop.first, loop.last
        if type(first) is int and type(last) is int:  # which is most of them
            return last - first + 1
        first, last = self.term(first), self.term(last)
        if isinstance(first, int) and isinstance(last, int):
            return last - first + 1
        return simplify("+", simplify("-", last, first), 1)


def counters_of(loops: Sequence[Loop]) -> Counters:
    """The counters in the body of loops inside each other."""
    found = Counters()
    for loop in loops:
        found = found.inside(loop)
    return found

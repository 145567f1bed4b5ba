"""Terms over loop variables as terms over the counters of repeats, which begin at 0."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.base.terms import LoopVariable, Term, apply, fits_int64, operation
from nacre.nem.model.program import Loop
from nacre.nem.plan.columns import as_term
from nacre.tcb.image import counter


def simplify(op: str, left: Term, right: Term) -> Term:
    """An operation, worked out where it can be."""
    if type(right) is int and right > 1 and type(left) is not int:
        return operation(op, left, right)  # which is most of them
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
    if isinstance(symbolic, int):
        return number + symbolic
    return simplify("+", symbolic, number) if number >= 0 else simplify("-", symbolic, -number)


class Counters:
    """The loops around a place, outermost first: their variables by counters."""

    def __init__(self, loops: Sequence[Loop]) -> None:
        self._values: list[Term] = []
        for loop in loops:
            first = self.term(loop.first)
            self._values.append(simplify("+", counter(loop.depth), first))

    def term(self, value: object) -> Term:
        """A term of the program over counters."""
        if type(value) is int:
            return value
        term = as_term(value)
        if term is None:
            raise ValueError("a part of a program with errors")
        return self._replace(term)

    def _replace(self, term: Term) -> Term:
        if isinstance(term, LoopVariable):
            return self._values[term.depth]
        if isinstance(term, int):
            return term
        return simplify(term.op, self._replace(term.left), self._replace(term.right))

    def count(self, loop: Loop) -> Term:
        """How often a loop at this place repeats its body."""
        first, last = self.term(loop.first), self.term(loop.last)
        if isinstance(first, int) and isinstance(last, int):
            return last - first + 1
        return simplify("+", simplify("-", last, first), 1)

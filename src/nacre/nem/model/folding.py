"""Expressions resolved: constants become integers, loop variables stay symbolic."""

from __future__ import annotations

from msgspec import Struct

from nacre.base.rules import Rule
from nacre.base.terms import LoopVariable, Term, apply
from nacre.nem.spec.rules.constants import CST05
from nacre.nem.spec.rules.lexical import LEX04, LEX05, LEX06, LEX07, LEX08
from nacre.nem.spec.rules.names import LOP03, NAM03
from nacre.nem.syntax.ast import Binary, Expr, IntLit, NameRef, Negated, Paren

Folded = Term | float | None  # None: it has been reported why there is no value


class Context(Struct, frozen=True):
    """Where an expression stands, and what is allowed there."""

    what: str
    float_rule: Rule | None  # None: floats are allowed
    wrong_kind_rule: Rule = NAM03
    allows_loop_variables: bool = True


CONST = Context("a constant", LEX08, CST05, allows_loop_variables=False)
BUFFER_SIZE = Context("a buffer size", LEX04, allows_loop_variables=False)
ENGINE_INDEX = Context("an engine index", LEX04, allows_loop_variables=False)
REGION_BOUND = Context("an offset or extent", LEX05)
SHAPE = Context("a shape", LEX06)
LOOP_BOUND = Context("a loop bound", LEX07, LOP03)
VALUE = Context("a value", None)
MEMORY_SIZE = Context("a memory size", LEX04, allows_loop_variables=False)


def value_left_to_right(node: Expr, values: dict[str, int]) -> int | None:
    """The value of an expression read from left to right without precedence."""
    items: list[Expr | str] = []
    _flatten(node, items)
    result = value_by_precedence(items[0], values)  # type: ignore[arg-type] # even places: operands
    for op, operand in zip(items[1::2], items[2::2], strict=True):
        value = value_by_precedence(operand, values)  # type: ignore[arg-type]
        if result is None or value is None or (value == 0 and op in ("/", "mod")):
            return None
        result = apply(str(op), result, value)
    return result


def _flatten(node: Expr, items: list[Expr | str]) -> None:
    if isinstance(node, Binary):
        _flatten(node.left, items)
        items.append(node.op)
        _flatten(node.right, items)
    else:
        items.append(node)


def value_by_precedence(node: Expr, values: dict[str, int]) -> int | None:
    """The value of an expression with `*`, `/` and `mod` first; None where there is none."""
    if isinstance(node, IntLit):
        return node.value
    if isinstance(node, NameRef):
        return values.get(node.name)
    if isinstance(node, Paren):
        return value_by_precedence(node.inner, values)
    if isinstance(node, Negated):
        value = value_by_precedence(node.operand, values)
        return None if value is None else -value
    if isinstance(node, Binary):
        left, right = (
            value_by_precedence(node.left, values),
            value_by_precedence(node.right, values),
        )
        if left is None or right is None or (right == 0 and node.op in ("/", "mod")):
            return None
        return apply(node.op, left, right)
    return None


def mixes_precedence(node: Expr) -> bool:
    """Whether `*`, `/` or `mod` follows `+` or `-` at one level of parentheses."""
    return isinstance(node, Binary) and (
        (node.op in ("+", "-") and isinstance(node.right, Binary))
        or mixes_precedence(node.left)
        or mixes_precedence(node.right)
    )


def substitute(term: Term, iteration: int) -> int:
    """The value of a term with every loop variable at its own value near `iteration`."""
    if isinstance(term, int):
        return term
    if isinstance(term, LoopVariable):
        return iteration + 2 * term.depth
    left, right = substitute(term.left, iteration), substitute(term.right, iteration)
    return 0 if right == 0 and term.op in ("/", "mod") else apply(term.op, left, right)

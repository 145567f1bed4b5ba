"""Resolving expressions: what they are worth, or what is wrong with them."""

from __future__ import annotations

import re

from nacre.base.diagnostics import Fix
from nacre.base.excerpt import backquote
from nacre.base.fixes import replacement_fix
from nacre.base.source import Span
from nacre.base.terms import LoopVariable, Operation, apply, fits_int64
from nacre.nem.model.arithmetic import apply_to_floats
from nacre.nem.model.folding import (
    CONST,
    Context,
    Folded,
    mixes_precedence,
    substitute,
    value_by_precedence,
    value_left_to_right,
)
from nacre.nem.model.names import Names
from nacre.nem.model.program import Quant, Region, Type
from nacre.nem.model.symbols import Symbol
from nacre.nem.spec.limits import MAX_TERM_OPERATIONS
from nacre.nem.spec.rules.constants import CST02, CST06, CST07, CST16, CST17
from nacre.nem.spec.rules.document import DOC20
from nacre.nem.syntax.ast import (
    Binary,
    BoolLit,
    Expr,
    FloatLit,
    IntLit,
    ListLit,
    NameRef,
    Negated,
    Paren,
    StringLit,
    Value,
)

# A generated program may hold thousands of such expressions; a few make the point.
_MOST_PRECEDENCE_HINTS = 20


class Expressions:
    """Resolves expressions in the scope that `names` stands in."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._hints = 0
        self._is_mixed = False  # a product follows `+` or `-` in the expression at hand
        self._operations: dict[Operation, Operation] = {}  # equal ones are one value

    def resolve(self, node: Expr, context: Context) -> Folded:
        """The value of an expression; None when it has none, which has then been reported."""
        if isinstance(node, IntLit):
            return node.value
        self._is_mixed = False
        folded = self._fold(node, context)
        if self._is_mixed and folded is not None:
            self._hint_at_precedence(node)
        return folded

    def constant(self, node: Value, name: str) -> int | None:
        """The value of a constant declaration."""
        if not isinstance(node, Expr):
            message = f"constant {backquote(name)} is {describe(node)}; constants are integers"
            self._names.report(CST02, node, message, help="bind it with `let`")
            return None
        self._names.defining = name
        folded = self.resolve(node, CONST)
        self._names.defining = None
        return folded if isinstance(folded, int) else None

    def _fold(self, node: Expr, context: Context) -> Folded:
        if isinstance(node, IntLit):
            return node.value
        if isinstance(node, NameRef):
            symbol = self._names.scope.find(node.name)
            if symbol is not None and symbol.kind == "const" and type(symbol.value) is int:
                return symbol.value
            return self._name(node, context)
        if isinstance(node, Binary):
            return self._binary(node, context)
        if isinstance(node, Paren):
            return self._fold(node.inner, context)
        if isinstance(node, Negated):
            operand = self._fold(node.operand, context)
            if isinstance(operand, float):
                return -operand
            return None if operand is None else self._operation(node, "-", 0, operand)
        return self._float(node, node.value, context) if node.is_well_formed else None

    def _float(self, node: Expr, value: float, context: Context) -> float | None:
        if context.float_rule is None:
            return value
        text = backquote(self._names.source.text[node.start : node.end])
        self._names.report(
            context.float_rule,
            node,
            f"{context.what} needs an integer, found the float {text}",
            fix=_as_integer(self._names.source.span(node.start, node.end)),
        )
        return None

    def _name(self, node: NameRef, context: Context) -> Folded:
        symbol = self._names.value_symbol(node, context)
        if symbol is None:
            return None
        value = symbol.value
        if isinstance(value, LoopVariable) and not context.allows_loop_variables:
            message = f"loop variable {backquote(node.name)} varies; {context.what} does not"
            self._names.report(context.wrong_kind_rule, node, message)
            return None
        if isinstance(value, bool | str | tuple | Quant | Region | Symbol | Type):
            self._names.report(context.wrong_kind_rule, node,
                               f"{backquote(node.name)} is not a number; {context.what} needs one",
                               related=self._names.declaration_note(symbol))  # fmt: skip
            return None
        if isinstance(value, float):
            return self._float(node, value, context)
        return value if isinstance(value, int | LoopVariable | Operation) else None

    def _binary(self, node: Binary, context: Context) -> Folded:
        if type(node.right) is Binary and node.op in ("+", "-"):
            self._is_mixed = True
        left = self._fold(node.left, context)
        right = self._fold(node.right, context)
        if right == 0 and node.op in ("/", "mod"):
            rule, word = (CST06, "division") if node.op == "/" else (CST07, "remainder")
            self._names.report(
                rule, node.right, f"{word} by zero", help=self._zero_divisor_help(node.right)
            )
            return None
        if left is None or right is None:
            return None
        if type(left) is float or type(right) is float:
            return self._float_operation(node.op, left, right)
        return self._operation(node, node.op, left, right)

    @staticmethod
    def _float_operation(op: str, left: Folded, right: Folded) -> float | None:
        if not isinstance(left, int | float) or not isinstance(right, int | float):
            return None
        return apply_to_floats(op, float(left), float(right))

    def _zero_divisor_help(self, node: Expr) -> str | None:
        return None if isinstance(node, IntLit) else "the divisor evaluates to 0"

    def _operation(self, node: Expr, op: str, left: Folded, right: Folded) -> Folded:
        if isinstance(left, int) and isinstance(right, int):
            value = apply(op, left, right)
            if fits_int64(value):
                return value
            self._names.report(CST16, node, f"the value {value} does not fit in 64 bits")
            return None
        if left is None or right is None or isinstance(left, float) or isinstance(right, float):
            return None
        size = 1 + _operation_count(left) + _operation_count(right)
        if size > MAX_TERM_OPERATIONS:
            message = f"more than {MAX_TERM_OPERATIONS} operations, names that `let` bound included"
            self._names.report(DOC20, node, message)
            return None
        made = Operation(op, left, right, size)
        return self._operations.setdefault(made, made)

    def _hint_at_precedence(self, node: Expr) -> None:
        if isinstance(node, Paren):
            self._hint_at_precedence(node.inner)
        elif isinstance(node, Binary):
            if mixes_precedence(node) and self._reads_differently(node):
                self._hints += 1
                if self._hints <= _MOST_PRECEDENCE_HINTS:
                    text = backquote(self._names.source.text[node.start : node.end], 60)
                    message = f"{text} read from left to right has another value"
                    help_ = "put parentheses around the product, or write the product first"
                    self._names.report(CST17, node, message, help=help_)
            elif not mixes_precedence(node):
                self._hint_at_precedence(node.left)
                self._hint_at_precedence(node.right)

    def _reads_differently(self, node: Binary) -> bool:
        for sample in (1, 2, 5):
            values = self._sample_values(node, sample)
            if value_left_to_right(node, values) != value_by_precedence(node, values):
                return True
        return False

    def _sample_values(self, node: Expr, sample: int) -> dict[str, int]:
        """Values for the names in an expression, loop variables at some iteration."""
        values: dict[str, int] = {}
        stack: list[Expr] = [node]
        while stack:
            part = stack.pop()
            if isinstance(part, Binary):
                stack += (part.left, part.right)
            elif isinstance(part, Paren):
                stack.append(part.inner)
            elif isinstance(part, Negated):
                stack.append(part.operand)
            elif isinstance(part, NameRef):
                symbol = self._names.scope.find(part.name)
                value = symbol.value if symbol is not None else None
                if isinstance(value, int | LoopVariable | Operation):
                    values[part.name] = substitute(value, sample)
        return values


def _operation_count(term: Folded) -> int:
    return term.size if isinstance(term, Operation) else 0


def describe(node: Value) -> str:
    """A value that is no number, as messages put it."""
    if isinstance(node, StringLit):
        return "a string"
    if isinstance(node, BoolLit):
        return "a boolean"
    if isinstance(node, FloatLit):
        return "a float"
    return "a list" if isinstance(node, ListLit) else "a region"


def _as_integer(span: Span) -> Fix | None:
    """The integer that a float such as `64.0` is."""
    match = re.fullmatch(r"([0-9]{1,18})\.0+", span.source.text[span.start : span.end])
    return None if match is None else replacement_fix(span, match[1])

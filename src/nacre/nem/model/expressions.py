"""Resolving expressions and values: what they are worth, or what is wrong with them."""

from __future__ import annotations

import re
from typing import Literal

from nacre.base.diagnostics import Fix
from nacre.base.elements import ELEMENT_TYPES
from nacre.base.excerpt import quoted
from nacre.base.fixes import replacing, respelling
from nacre.base.source import Span
from nacre.base.suggest import did_you_mean
from nacre.nem.model.arithmetic import apply, float_operation, in_range
from nacre.nem.model.folding import (
    CONST,
    REGION_BOUND,
    SHAPE,
    VALUE,
    Context,
    Folded,
    LoopVariable,
    Operation,
    conventional_value,
    flat_value,
    mixes_precedence,
    substitute,
)
from nacre.nem.model.names import Names
from nacre.nem.model.program import Buffer, Decorator, Loop, Quant, Region
from nacre.nem.model.symbols import Symbol
from nacre.nem.spec.limits import MAX_TERM_OPERATIONS
from nacre.nem.spec.rules.constants import CST02, CST06, CST07, CST16, CST17
from nacre.nem.spec.rules.document import DOC16, DOC20
from nacre.nem.spec.rules.lexical import LEX06
from nacre.nem.spec.rules.names import NAM01, NAM03
from nacre.nem.syntax import ast
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
    RegionExpr,
    StringLit,
    Value,
)
from nacre.nem.syntax.regions import element_respelling

# A generated program may hold thousands of such expressions; a few make the point.
_MOST_PRECEDENCE_HINTS = 20

_FORMS: dict[str, Literal["per_tensor", "per_channel", "per_group"]] = {
    "per_tensor": "per_tensor",
    "per_channel": "per_channel",
    "per_group": "per_group",
}

_QUANT_HELP = "write it out, or name it: `let q = per_tensor(scale=..., zero_point=...)`"


class Expressions:
    """Resolves expressions in the scope that `names` stands in."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._hints = 0

    def resolve(self, node: Expr, context: Context) -> Folded:
        """The value of an expression; None when it has none, which has then been reported."""
        if isinstance(node, IntLit):
            return node.value
        folded = self._fold(node, context)
        if folded is not None:
            self._hint_at_precedence(node)
        return folded

    def constant(self, node: Value, name: str) -> int | None:
        """The value of a constant declaration."""
        if not isinstance(node, Expr):
            message = f"constant {quoted(name)} is {_described(node)}; constants are integers"
            self._names.report(CST02, node, message, help="bind it with `let`")
            return None
        self._names.defining = name
        folded = self.resolve(node, CONST)
        self._names.defining = None
        return folded if isinstance(folded, int) else None

    def value(self, node: Value) -> object:
        """Any value: a number, term, string, boolean, tuple, Region, or the Symbol of an alias."""
        if isinstance(node, StringLit | BoolLit):
            return node.value
        if isinstance(node, ListLit):
            return tuple(self.value(item) for item in node.items)
        if isinstance(node, RegionExpr):
            return self.region(node)
        if isinstance(node, NameRef):
            alias = self._names.scope.find(node.name)
            if alias is not None and alias.kind not in ("const", "loop"):
                return alias.value if alias.kind == "let" and alias.value is not None else alias
        return self.resolve(node, VALUE)

    def region(
        self,
        node: RegionExpr,
        name: str | None = None,
        decorators: tuple[Decorator, ...] = (),
        loops: tuple[Loop, ...] = (),
    ) -> Region:
        """A region with its buffer looked up and its expressions resolved."""
        symbol = self._names.buffer(node.buffer)
        buffer = symbol.value if symbol is not None else None
        offset = self.resolve(node.offset, REGION_BOUND)
        extent = self.resolve(node.extent, REGION_BOUND)
        type_ = node.type
        shape = strides = elem = layout = quant = None
        if type_ is not None:
            elem = self._element(type_.elem) if type_.elem is not None else None
            layout = type_.layout.name if type_.layout is not None else None
            shape = self._dimensions(type_.shape)
            strides = self._dimensions(type_.strides)
            quant = self._named_quant(type_.quant) if type_.quant is not None else None
        return Region(
            name,
            buffer if isinstance(buffer, Buffer) else None,
            offset,
            extent,
            elem,
            shape,
            layout,
            strides,
            quant,
            decorators,
            loops,
            node,
        )

    def _dimensions(self, node: ListLit | NameRef | None) -> tuple[Folded, ...] | None:
        if node is None:
            return None
        if isinstance(node, ListLit):
            return tuple(self._dimension(item) for item in node.items)
        value = self.value(node)
        if isinstance(value, tuple):
            return tuple(self._member(node, item) for item in value)
        if value is not None:
            message = f"{quoted(node.name)} is not a list; a shape or strides need one"
            self._names.report(NAM03, node, message)
        return None

    def _member(self, node: NameRef, item: object) -> Folded:
        """A dimension from a list that a name stands for."""
        if isinstance(item, int | LoopVariable | Operation) and not isinstance(item, bool):
            return item
        name = quoted(node.name)
        if isinstance(item, float):
            self._names.report(LEX06, node, f"a shape needs integers, but {name} holds {item}")
        elif item is not None:
            message = f"a shape needs integers, but {name} holds something else"
            self._names.report(NAM03, node, message)
        return None

    def _dimension(self, node: Value) -> Folded:
        if isinstance(node, Expr):
            return self.resolve(node, SHAPE)
        self._names.report(NAM03, node, f"a dimension is an integer, found {_described(node)}")
        return None

    def _element(self, node: NameRef) -> str | None:
        """An element type: one of the language's, or what a `let` named."""
        if node.name in ELEMENT_TYPES:
            return node.name
        symbol = self._names.scope.find(node.name)
        if symbol is not None and symbol.kind == "unknown":
            return None
        value = symbol.value if symbol is not None else None
        if symbol is not None and symbol.kind == "let" and _is_element(value):
            return str(value)
        related = () if symbol is None else self._names.declared(symbol)
        lets = [one.name for one in self._names.lets() if _is_element(one.value)]
        help_ = did_you_mean(node.name, [*ELEMENT_TYPES, *lets])
        listed = f"the element types are {', '.join(ELEMENT_TYPES)}"
        message = f"{quoted(node.name)} is not an element type"
        span = self._names.source.span(node.start, node.end)
        self._names.report(DOC16, node, message, help=help_ if lets else listed, related=related,
                           fix=element_respelling(span, node.name, lets))  # fmt: skip
        return None

    def _named_quant(self, node: ast.Quant | NameRef) -> Quant | None:
        """A quantisation that is written out, or that a `let` named."""
        if isinstance(node, ast.Quant):
            return self.quant(node)
        symbol = self._names.scope.find(node.name)
        if symbol is not None and symbol.kind == "unknown":
            return None
        if symbol is not None and isinstance(symbol.value, Quant):
            return symbol.value
        if symbol is None:
            named = [one.name for one in self._names.lets() if isinstance(one.value, Quant)]
            help_ = did_you_mean(node.name, [*named, *_FORMS]) or _QUANT_HELP
            message = f"unknown name {quoted(node.name)}; a quantisation is needed here"
            span = self._names.source.span(node.start, node.end)
            fix = respelling(span, node.name, named, is_own=True)
            self._names.report(NAM01, node, message, help=help_, fix=fix)
            return None
        message = f"{quoted(node.name)} is {symbol.described}, not a quantisation"
        related = self._names.declared(symbol)
        self._names.report(NAM03, node, message, help=_QUANT_HELP, related=related)
        return None

    def quant(self, node: ast.Quant) -> Quant:
        """A quantisation descriptor with its values resolved."""
        values = []
        for value in (node.scales, node.zero_points):
            resolved = self.value(value) if value is not None else None
            if resolved is None or isinstance(resolved, tuple):
                values.append(resolved)
            else:
                values.append((resolved,))
        return Quant(
            _FORMS[node.form],
            node.axis.value if node.axis is not None else None,
            node.group_size.value if node.group_size is not None else None,
            values[0],
            values[1],
            node,
        )

    def _fold(self, node: Expr, context: Context) -> Folded:
        if isinstance(node, IntLit):
            return node.value
        if isinstance(node, NameRef):
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
        text = quoted(self._names.source.text[node.start : node.end])
        self._names.report(
            context.float_rule,
            node,
            f"{context.what} needs an integer, found the float {text}",
            fix=_as_integer(self._names.source.span(node.start, node.end)),
        )
        return None

    def _name(self, node: NameRef, context: Context) -> Folded:
        symbol = self._names.in_expression(node, context)
        if symbol is None:
            return None
        value = symbol.value
        if isinstance(value, LoopVariable) and not context.allows_loop_variables:
            message = f"loop variable {quoted(node.name)} varies; {context.what} does not"
            self._names.report(context.wrong_kind_rule, node, message)
            return None
        if isinstance(value, bool | str | tuple | Region | Symbol):
            self._names.report(context.wrong_kind_rule, node,
                               f"{quoted(node.name)} is not a number; {context.what} needs one",
                               related=self._names.declared(symbol))  # fmt: skip
            return None
        if isinstance(value, float):
            return self._float(node, value, context)
        return value if isinstance(value, int | LoopVariable | Operation) else None

    def _binary(self, node: Binary, context: Context) -> Folded:
        left = self._fold(node.left, context)
        right = self._fold(node.right, context)
        if right == 0 and node.op in ("/", "mod"):
            rule, word = (CST06, "division") if node.op == "/" else (CST07, "remainder")
            self._names.report(rule, node.right, f"{word} by zero", help=self._zero(node.right))
            return None
        if left is None or right is None:
            return None
        if isinstance(left, float) or isinstance(right, float):
            return self._float_operation(node.op, left, right)
        return self._operation(node, node.op, left, right)

    @staticmethod
    def _float_operation(op: str, left: Folded, right: Folded) -> float | None:
        if not isinstance(left, int | float) or not isinstance(right, int | float):
            return None
        return float_operation(op, float(left), float(right))

    def _zero(self, node: Expr) -> str | None:
        return None if isinstance(node, IntLit) else "the divisor evaluates to 0"

    def _operation(self, node: Expr, op: str, left: Folded, right: Folded) -> Folded:
        if isinstance(left, int) and isinstance(right, int):
            value = apply(op, left, right)
            if in_range(value):
                return value
            self._names.report(CST16, node, f"the value {value} does not fit in 64 bits")
            return None
        if left is None or right is None or isinstance(left, float) or isinstance(right, float):
            return None
        size = 1 + _size(left) + _size(right)
        if size > MAX_TERM_OPERATIONS:
            message = f"more than {MAX_TERM_OPERATIONS} operations, names that `let` bound included"
            self._names.report(DOC20, node, message)
            return None
        return Operation(op, left, right, size)

    def _hint_at_precedence(self, node: Expr) -> None:
        if isinstance(node, Paren):
            self._hint_at_precedence(node.inner)
        elif isinstance(node, Binary):
            if mixes_precedence(node) and self._reads_differently(node):
                self._hints += 1
                if self._hints <= _MOST_PRECEDENCE_HINTS:
                    text = quoted(self._names.source.text[node.start : node.end], 60)
                    message = f"{text} read from left to right has another value"
                    help_ = "put parentheses around the product, or write the product first"
                    self._names.report(CST17, node, message, help=help_)
            elif not mixes_precedence(node):
                self._hint_at_precedence(node.left)
                self._hint_at_precedence(node.right)

    def _reads_differently(self, node: Binary) -> bool:
        for sample in (1, 2, 5):
            values = self._sample(node, sample)
            if flat_value(node, values) != conventional_value(node, values):
                return True
        return False

    def _sample(self, node: Expr, sample: int) -> dict[str, int]:
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


def _is_element(value: object) -> bool:
    return isinstance(value, str) and value in ELEMENT_TYPES


def _size(term: Folded) -> int:
    return term.size if isinstance(term, Operation) else 0


def _described(node: Value) -> str:
    if isinstance(node, StringLit):
        return "a string"
    if isinstance(node, BoolLit):
        return "a boolean"
    if isinstance(node, FloatLit):
        return "a float"
    return "a list" if isinstance(node, ListLit) else "a region"


def _as_integer(span: Span) -> Fix | None:
    """The integer that a float such as `64.0` is."""
    match = re.fullmatch(r"(\d{1,18})\.0+", span.source.text[span.start : span.end])
    return None if match is None else replacing(span, match[1])

"""Values: what `let` binds and attributes hold; and decorators, whose arguments are values."""

from __future__ import annotations

from nacre.nem.syntax.ast import BoolLit, Decorator, ListLit, UnitRef, Value
from nacre.nem.syntax.cursor import Cursor
from nacre.nem.syntax.expressions import expression, is_operator_at, list_of, string_literal
from nacre.nem.syntax.regions import region_expression


def value_of(c: Cursor) -> Value:
    """`value`: an expression, string, boolean, list or region."""
    text = c.texts[c.i]
    if text == "[":
        return list_of_values(c)
    if text[:1] == '"':
        return string_literal(c)
    if text == "region" and c.texts[c.i + 1] == "(":
        return region_expression(c)
    if (text == "true" or text == "false") and not is_operator_at(c.texts, c.i + 1):
        start = c.start()
        c.i += 1
        return BoolLit(start, start + len(text), text == "true")
    return expression(c)


def list_of_values(c: Cursor) -> ListLit:
    """`[` value_list? `]`."""
    return list_of(c, value_of)


def decorator_list(c: Cursor) -> tuple[Decorator, ...]:
    """`decos`: any number of them."""
    if c.texts[c.i] != "@":
        return ()
    decorators = []
    while c.texts[c.i] == "@":
        decorators.append(_decorator(c))
    return tuple(decorators)


def _decorator(c: Cursor) -> Decorator:
    start = c.start()
    c.i += 1
    name = c.reference("a decorator's name after `@`")
    if c.texts[c.i] != "(":
        return Decorator(start, name.end, name, None)
    c.i += 1
    args: list[Value | UnitRef] = []
    while c.texts[c.i] != ")":
        args.append(_argument(c))
        if not c.comma(")"):
            break
    if c.texts[c.i] != ")":
        c.fail_expected("`,` or `)`")
    c.i += 1
    return Decorator(start, c.last_end(), name, tuple(args))


def _argument(c: Cursor) -> Value | UnitRef:
    start = c.start()
    if not c.texts[c.i].isidentifier() or c.texts[c.i + 1] != "[":
        return value_of(c)
    unit = c.name("a unit")
    c.i += 1
    index = expression(c)
    c.expect("]")
    return UnitRef(start, c.last_end(), unit, index)

"""Expressions and lists. `*`, `/` and `mod` bind more tightly than `+` and `-`; all to the left."""

from __future__ import annotations

import re
from collections.abc import Callable

from nacre.base.excerpt import backquote
from nacre.base.terms import INT64_MAX, INT64_MIN
from nacre.nem.spec.limits import MAX_EXPRESSION_OPERATORS
from nacre.nem.spec.rules.constants import CST16
from nacre.nem.spec.rules.document import DOC20, DOC24
from nacre.nem.syntax.ast import (
    Binary,
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
from nacre.nem.syntax.cursor import STATEMENT_WORDS, Cursor, Recover

OPERATORS = frozenset({"+", "-", "*", "/", "mod"})
_ENDS = frozenset({",", ")", "]", ".."})
_ESCAPE = re.compile(r"\\([\"\\])")
_LONGEST_INT = len(str(INT64_MAX))
_MOST_NUMBERS = 1 << 14  # tokens of a list that is read as a whole
_PLAIN_NUMBER = re.compile(r"\d{1,18}|\d+\.\d+(?:[eE][+-]?\d+)?", re.ASCII)
_LEAST_DIGITS = str(-INT64_MIN)


def is_operator_at(texts: list[str], i: int) -> bool:
    """Whether token `i` is an operator; `mod =` begins a statement or an attribute."""
    return texts[i] in OPERATORS and (texts[i] != "mod" or texts[i + 1] != "=")


def expression(c: Cursor) -> Expr:
    """`expr`: sums of products of primaries."""
    texts = c.texts
    if texts[c.i + 1] in _ENDS:  # most expressions are a single token
        return _unary(c)
    left = _product(c)
    while (op := texts[c.i]) == "+" or op == "-":
        _count_operator(c)
        right = _product(c)
        left = Binary(left.start, right.end, op, left, right)
    return left


def _product(c: Cursor) -> Expr:
    texts = c.texts
    left = _unary(c)
    while (op := texts[c.i]) == "*" or op == "/" or (op == "mod" and texts[c.i + 1] != "="):
        _count_operator(c)
        right = _unary(c)
        left = Binary(left.start, right.end, op, left, right)
    return left


def _count_operator(c: Cursor) -> None:
    c.operators += 1
    if c.operators > MAX_EXPRESSION_OPERATORS:
        c.fail(DOC20, f"more than {MAX_EXPRESSION_OPERATORS} operators in one statement")
    c.i += 1


def _unary(c: Cursor) -> Expr:
    i = c.i
    text = c.texts[i]
    start = c.starts[i]
    if text.isidentifier():
        if c.texts[i + 1] == "=" and c.is_assigned():
            c.fail_expected("an expression")
        if text in STATEMENT_WORDS and c.at_next_statement():
            c.fail_expected("an expression")
        c.i = i + 1
        return NameRef(start, start + len(text), text)
    if text.isdigit():
        c.i = i + 1
        return IntLit(start, start + len(text), _integer(c, text, start))
    if text == "(":
        c.enter_nesting()
        c.i = i + 1
        inner = expression(c)
        c.expect(")")
        c.depth -= 1
        return Paren(start, c.last_end(), inner)
    if text == "-":
        if c.texts[i + 1].lstrip("0") == _LEAST_DIGITS:  # whose digits alone are no integer
            c.i = i + 2
            return IntLit(start, c.last_end(), INT64_MIN)
        c.enter_nesting()
        c.i = i + 1
        operand = _unary(c)
        c.depth -= 1
        return Negated(start, operand.end, operand)
    if text and text[0] in "0123456789." and text not in (".", ".."):
        c.i = i + 1
        return FloatLit(start, start + len(text), text)
    return c.fail_expected("an expression")


def _integer(c: Cursor, text: str, start: int) -> int:
    if len(text) <= _LONGEST_INT and (value := int(text)) <= INT64_MAX:
        return value
    digits = text.lstrip("0") or "0"
    if len(digits) <= _LONGEST_INT and int(digits) <= INT64_MAX:
        return int(digits)
    c.report(
        CST16,
        f"integer {backquote(text, 24)} does not fit in 64 bits; the greatest is {INT64_MAX}",
        start,
        start + len(text),
    )
    raise Recover


def integer_literal(c: Cursor, what: str) -> IntLit | None:
    """An optionally negative integer literal; an expression is read, reported, and dropped."""
    start = c.start()
    texts = c.texts
    sign = texts[c.i] == "-"
    if texts[c.i + sign].isdigit() and not is_operator_at(texts, c.i + sign + 1):
        c.i += sign
        is_least = sign and texts[c.i].lstrip("0") == _LEAST_DIGITS
        value = -INT64_MIN if is_least else _integer(c, texts[c.i], c.start())
        c.i += 1
        return IntLit(start, c.last_end(), -value if sign else value)
    expr = expression(c)
    c.report(
        DOC24,
        f"{what} takes an integer literal, found {backquote(c.source.text[expr.start : expr.end])}",
        expr.start,
        expr.end,
        help="write the number itself",
    )
    return None


def list_of(c: Cursor, item: Callable[[Cursor], Value]) -> ListLit:
    """`[` items `]`, separated by commas; may be empty."""
    start = c.start()
    texts = c.texts
    c.enter_nesting()
    c.expect("[")
    items: list[Value] = _plain_numbers(c)
    while texts[c.i] != "]":
        items.append(item(c))
        if not c.comma("]"):
            break
    if texts[c.i] != "]":
        c.fail_expected("`,` or `]`")
    c.i += 1
    c.depth -= 1
    return ListLit(start, c.last_end(), tuple(items))


def _plain_numbers(c: Cursor) -> list[Value]:
    """The numbers of a list that holds nothing else, which are stepped over; else none.

    Scales of channels are hundreds of numbers that need no parser.
    """
    texts, starts, begin = c.texts, c.starts, c.i
    if texts[begin + 1] != "," or texts[begin + 3] != ",":
        return []
    try:
        end = texts.index("]", begin, begin + _MOST_NUMBERS)
    except ValueError:
        return []
    numbers = texts[begin:end:2]
    marks = texts[begin + 1 : end : 2]
    if len(marks) != len(numbers) - 1 or marks.count(",") != len(marks):
        return []
    if not all(map(_PLAIN_NUMBER.fullmatch, set(numbers))):
        return []
    c.i = end
    return [
        FloatLit(start, start + len(text), text)
        if "." in text
        else IntLit(start, start + len(text), int(text))
        for start, text in zip(starts[begin:end:2], numbers, strict=True)
    ]


def number_list(c: Cursor) -> ListLit | NameRef:
    """A list of expressions, or the name of a list that `let` bound."""
    return list_of(c, expression) if c.texts[c.i] == "[" else c.reference("`[`")


def string_literal(c: Cursor) -> StringLit:
    """A string; the lexer has reported one that is not closed."""
    text = c.texts[c.i]
    start = c.start()
    if text[:1] != '"':
        c.fail_expected("a string")
    c.i += 1
    body = text[1:-1] if len(text) > 1 and text.endswith('"') else text[1:]
    return StringLit(start, start + len(text), _ESCAPE.sub(r"\1", body))

"""Conditions of breakpoints as text: `i == 3`, `i mod 2 == 1 and j > 0`, over loop variables."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping

from nacre.base.excerpt import quoted
from nacre.base.source import Source
from nacre.nem.model.folding import conventional_value
from nacre.nem.run.regions import UnknownNameError
from nacre.nem.syntax.ast import Expr
from nacre.nem.syntax.cursor import Cursor, Recover
from nacre.nem.syntax.expressions import expression
from nacre.nem.syntax.lexer import tokenize

_COMPARISON = re.compile(r"(?P<left>[^<>=!]+)(?P<op>==|!=|<=|>=|<|>)(?P<right>[^<>=!]+)")
_OPERATORS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def condition(text: str, constants: Mapping[str, int]) -> Callable[[Mapping[str, int]], bool]:
    """A function of the loop variables' values; a comparison without value there is false."""
    parts = [_comparison(part, constants) for part in re.split(r"\band\b", text)]
    return lambda variables: all(part(variables) for part in parts)


def _comparison(text: str, constants: Mapping[str, int]) -> Callable[[Mapping[str, int]], bool]:
    match = _COMPARISON.fullmatch(text.strip())
    if match is None:
        raise UnknownNameError(
            f"{quoted(text.strip())} is no condition; write for example `i == 3 and j > 0`"
        )
    left, right = _expression(match["left"]), _expression(match["right"])
    compare = _OPERATORS[match["op"]]

    def holds(variables: Mapping[str, int]) -> bool:
        values = {**constants, **variables}
        a, b = conventional_value(left, values), conventional_value(right, values)
        return a is not None and b is not None and compare(a, b)

    return holds


def _expression(text: str) -> Expr:
    cursor = Cursor(Source("<condition>", text), tokenize(Source("<condition>", text)))
    try:
        made = expression(cursor)
    except Recover:
        made = None
    if made is None or cursor.texts[cursor.i] or cursor.found:
        raise UnknownNameError(f"{quoted(text.strip())} is no integer expression")
    return made

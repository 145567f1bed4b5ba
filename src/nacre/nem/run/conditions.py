"""Conditions of breakpoints as text: `i == 3`, `i mod 2 == 1 and j > 0`, over loop variables."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet

from nacre.base.excerpt import quoted
from nacre.base.source import Source
from nacre.base.suggest import did_you_mean
from nacre.nem.model.folding import conventional_value
from nacre.nem.run.regions import UnknownNameError
from nacre.nem.syntax.ast import Binary, Expr, IntLit, NameRef, Negated, Paren
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


def condition(
    text: str, constants: Mapping[str, int], variables: Collection[str]
) -> Callable[[Mapping[str, int]], bool]:
    """A function of the loop variables' values; a comparison without value there is false."""
    known = {*constants, *variables}
    parts = [_comparison(part, constants, known) for part in re.split(r"\band\b", text)]
    return lambda variables: all(part(variables) for part in parts)


def _comparison(
    text: str, constants: Mapping[str, int], known: AbstractSet[str]
) -> Callable[[Mapping[str, int]], bool]:
    match = _COMPARISON.fullmatch(text.strip())
    if match is None:
        raise UnknownNameError(
            f"{quoted(text.strip())} is no condition; write for example `i == 3 and j > 0`"
        )
    left, right = _expression(match["left"], known), _expression(match["right"], known)
    compare = _OPERATORS[match["op"]]
    samples = ({**constants, **dict.fromkeys(known - constants.keys(), n)} for n in (1, 2, 5))
    if all(None in (conventional_value(left, s), conventional_value(right, s)) for s in samples):
        raise UnknownNameError(f"{quoted(text.strip())} divides by zero")

    def holds(variables: Mapping[str, int]) -> bool:
        values = {**constants, **variables}
        a, b = conventional_value(left, values), conventional_value(right, values)
        return a is not None and b is not None and compare(a, b)

    return holds


def _expression(text: str, known: Collection[str]) -> Expr:
    cursor = Cursor(Source("<condition>", text), tokenize(Source("<condition>", text)))
    try:
        made = expression(cursor)
    except Recover:
        made = None
    if made is None or cursor.texts[cursor.i] or cursor.found:
        raise UnknownNameError(f"{quoted(text.strip())} is no integer expression")
    _require_integers(made, text, known)
    return made


def _require_integers(node: Expr, text: str, known: Collection[str]) -> None:
    """Only whole numbers, and names that have a value while the program runs."""
    if isinstance(node, NameRef) and node.name not in known:
        hint = did_you_mean(node.name, known) or f"there are {', '.join(sorted(known)) or 'none'}"
        raise UnknownNameError(f"no loop variable or constant {quoted(node.name)}; {hint}")
    if isinstance(node, Binary):
        _require_integers(node.left, text, known)
        _require_integers(node.right, text, known)
    elif isinstance(node, Paren | Negated):
        _require_integers(node.inner if isinstance(node, Paren) else node.operand, text, known)
    elif not isinstance(node, NameRef | IntLit):
        raise UnknownNameError(f"{quoted(text.strip())} is no integer expression")

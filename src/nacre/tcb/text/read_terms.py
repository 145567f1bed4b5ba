"""Terms read from text, without recursion: how deep they are is judged before they are made."""

from __future__ import annotations

import re

from nacre.base.terms import Term, fits_int64, operation, operation_count
from nacre.tcb.image import counter
from nacre.tcb.limits import MAX_DEPTH, MAX_TERM_DEPTH, MAX_TERM_OPERATIONS
from nacre.tcb.rules.text import TCB04, TCB06
from nacre.tcb.text.cursor import Cursor, Refused
from nacre.tcb.text.terms import PRECEDENCE
from nacre.tcb.text.tokens import Token

_COUNTER = re.compile(r"c(0|[1-9][0-9]{0,2})")
_MOST_DIGITS = 20
_Part = tuple[Term, int]  # a term, and how deep it is


def read_integer(cursor: Cursor) -> int:
    """An integer of 64 bits, with a sign."""
    is_negative = cursor.accept("-")
    token = cursor.token
    if token.kind != "integer":
        raise cursor.unexpected("an integer")
    cursor.take()
    return _value_of(cursor, token, is_negative)


def _value_of(cursor: Cursor, token: Token, is_negative: bool) -> int:
    digits = token.text.lower().removeprefix("0x").lstrip("0") or "0"
    is_short = len(digits) <= _MOST_DIGITS
    value = int(digits, 16 if token.text[:2].lower() == "0x" else 10) if is_short else 1 << 64
    value = -value if is_negative else value
    if not fits_int64(value):
        raise cursor.refusal(
            TCB04, token, f"{token.description} does not fit in 64 bits with a sign"
        )
    return value


def read_term(cursor: Cursor) -> Term:
    """A term."""
    return _TermReader(cursor).read()


class _TermReader:
    """Operators and terms that wait for what is right of them."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._start = cursor.token
        self._operators: list[str] = []
        self._terms: list[_Part] = []
        self._open = 0

    def read(self) -> Term:
        while True:
            while self._cursor.accept("("):
                self._operators.append("(")
                self._open += 1
                self._judge_open()
            self._terms.append((self._atom(), 0))
            while self._open and self._cursor.accept(")"):
                self._close()
            operator = self._operator()
            if operator is None:
                break
            self._reduce(PRECEDENCE[operator])
            self._operators.append(operator)
        if self._open:
            raise self._cursor.unexpected("`)` or an operator")
        self._reduce(0)
        return self._terms[-1][0]

    def _atom(self) -> Term:
        token = self._cursor.token
        if token.kind != "word":
            return read_integer(self._cursor)
        found = _COUNTER.fullmatch(token.text)
        if found is None or int(found[1]) >= MAX_DEPTH:
            raise self._cursor.unexpected("an integer, a counter such as `c0`, or `(`")
        self._cursor.take()
        return counter(int(found[1]))

    def _operator(self) -> str | None:
        text = self._cursor.token.text
        if text in PRECEDENCE and self._cursor.token.kind in ("mark", "word"):
            self._cursor.take()
            return text
        return None

    def _close(self) -> None:
        self._open -= 1
        self._reduce(0)
        self._operators.pop()

    def _reduce(self, precedence: int) -> None:
        """Apply operators that bind as strongly, back to the last parenthesis."""
        while self._operators and self._operators[-1] != "(":
            if PRECEDENCE[self._operators[-1]] < precedence:
                break
            op = self._operators.pop()
            (right, right_depth), (left, left_depth) = self._terms.pop(), self._terms.pop()
            depth = 1 + max(left_depth, right_depth)
            self._judge(depth, 1 + operation_count(left) + operation_count(right))
            self._terms.append((operation(op, left, right), depth))

    def _judge(self, depth: int, count: int) -> None:
        if depth > MAX_TERM_DEPTH or count > MAX_TERM_OPERATIONS:
            raise self._too_large(
                f"a term has at most {MAX_TERM_OPERATIONS:,} operations, {MAX_TERM_DEPTH} deep"
            )

    def _judge_open(self) -> None:
        if self._open > MAX_TERM_OPERATIONS:
            raise self._too_large(f"a term has at most {MAX_TERM_OPERATIONS:,} parentheses")

    def _too_large(self, message: str) -> Refused:
        return self._cursor.refusal(TCB06, self._start, message)

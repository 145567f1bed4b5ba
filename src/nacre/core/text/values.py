"""Attribute values as text: numbers, words, strings, lists, tensor literals."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from nacre.base.elements import GRAPH_TYPES, ElementType
from nacre.core.values import NO_ATTRIBUTES, Attributes, Custom, Literal, Word, attributes

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<number>[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|inf\b|nan\b))
      | (?P<word>[A-Za-z_]\w*)
      | (?P<mark>[\[\](){},=])
    )""",
    re.VERBOSE | re.ASCII,
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.ASCII)
_ESCAPES = {"n": "\n", "r": "\r"}
_MOST_DIGITS = 4000  # of an integer; Python refuses more
_NO_NUMBER = 10**309
_DEEPEST = 64  # arrays have no more axes


class ValueProblem(Exception):  # noqa: N818 - carries a finding, not a failure of ours
    """A value that cannot be read: what was expected, and where in the text."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.message = message
        self.at = at


class _Reader:
    """Goes through the tokens of attributes in braces."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self.at = start
        self.has_truth = False  # whether `true` or `false` was met

    def peek(self) -> str:
        """The token at hand; empty at the end."""
        match = _TOKEN.match(self._text, self.at)
        return match[0].strip() if match is not None else ""

    def take(self, expected: str | None = None) -> str:
        """The token at hand, which must be the expected one."""
        match = _TOKEN.match(self._text, self.at)
        token = match[0].strip() if match is not None else self._text[self.at : self.at + 1].strip()
        if match is None or (expected is not None and token != expected):
            wanted = f"`{expected}`" if expected is not None else "a value"
            place = self.at if match is None else match.end() - len(token)
            raise ValueProblem(f"expected {wanted}, found `{token}`" if token else
                               f"expected {wanted} before the end of the line", place)  # fmt: skip
        self.at = match.end()
        return token

    def read_braces(self) -> dict[str, Any]:
        """`{key=value, key=value}`."""
        self.take("{")
        entries: dict[str, Any] = {}
        while self.peek() != "}":
            place = self.at
            key = self.take()
            if not re.fullmatch(r"[A-Za-z_]\w*", key, re.ASCII):
                raise ValueProblem(f"expected the name of an attribute, found `{key}`", place)
            if key in entries:
                raise ValueProblem(f"attribute `{key}` is given twice", place)
            self.take("=")
            entries[key] = self.value(0)
            if self.peek() != "}":
                self.take(",")
        self.take("}")
        return entries

    def value(self, depth: int) -> Any:  # noqa: ANN401 - whatever stands there
        """Any value."""
        if depth > _DEEPEST:
            raise ValueProblem(f"more than {_DEEPEST} brackets inside each other", self.at)
        place = self.at
        token = self.take()
        if token == "[":
            items = []
            while self.peek() != "]":
                items.append(self.value(depth + 1))
                if self.peek() != "]":
                    self.take(",")
            self.take("]")
            return tuple(items)
        if token.startswith('"'):
            return unescape(token[1:-1])
        if token in ("true", "false"):
            self.has_truth = True
            return token == "true"
        if token == "Custom" and self.peek() == "(":
            self.take("(")
            pads = self.value(depth + 1)
            self.take(")")
            return Custom(pads) if isinstance(pads, tuple) else pads
        if (token[0].isalpha() or token[0] == "_") and token not in ("inf", "nan"):
            return Word(token)
        if token in ("{", "}", "(", ")", "]", ",", "="):
            raise ValueProblem(f"expected a value, found `{token}`", place)
        return _number(token)


def _number(token: str) -> int | float:
    if re.fullmatch(r"[+-]?\d+", token, re.ASCII):
        return read_integer(token)
    value = float(token)
    if math.isinf(value) and "inf" not in token:
        return _out_of_range_integer(token)
    # One NaN for all: attributes that hold the same object are equal.
    return math.nan if math.isnan(value) else value


def read_integer(token: str) -> int:
    """An integer; one of thousands of digits as some integer that no type holds."""
    return int(token) if len(token) < _MOST_DIGITS else _out_of_range_integer(token)


def _out_of_range_integer(token: str) -> int:
    """An integer that no type holds, for a number of thousands of digits: the verifier refuses it.

    It is no infinity, for that would be a value.
    """
    return -_NO_NUMBER if token[0] == "-" else _NO_NUMBER


def unescape(text: str) -> str:
    r"""What stands between quotes: `\n`, `\r`, `\u0041`; others behind `\` are themselves."""
    return _ESCAPE.sub(_character, text)


def _character(escape: re.Match[str]) -> str:
    if escape[1] is not None:
        return chr(int(escape[1], 16))
    return _ESCAPES.get(escape[2], escape[2])


def read_attributes(opcode: str, text: str, start: int = 0) -> tuple[Attributes, int]:
    """Attributes in braces from `start` on, and where they end; ValueProblem says what is wrong."""
    reader = _Reader(text, start)
    entries = reader.read_braces()
    if not entries:
        return NO_ATTRIBUTES, reader.at
    if opcode == "ConstTensor":
        entries = _with_literal(entries, reader.has_truth)
    elif opcode in ("ConstF32", "ConstF64") and type(entries.get("value")) is int:
        entries["value"] = _as_float(entries["value"])
    return attributes(entries), reader.at


def _as_float(value: int) -> int | float:
    try:
        return float(value)
    except OverflowError:
        return value


def _with_literal(entries: dict[str, Any], has_truth: bool) -> dict[str, Any]:
    """`data` as an array where it is one of the declared type; the verifier explains the rest."""
    element = GRAPH_TYPES.get(str(entries.get("dtype")))
    if element is None or "data" not in entries or (has_truth and element.kind != "bool"):
        return entries
    array = literal_array(entries["data"], element)
    return entries if array is None else {**entries, "data": Literal(array)}


def literal_array(data: object, element: ElementType) -> np.ndarray[Any, Any] | None:
    """Nested tuples as an array of a type; None where they are ragged or do not fit."""
    raw = _raw_array(data)
    if raw is None or (element.kind == "bool") != (raw.dtype.kind == "b"):
        return None
    if element.kind == "bool":
        return raw.astype(element.dtype)
    if not element.is_integer:
        return _float_array(raw, element)
    if raw.dtype.kind == "f":
        return None
    fits = raw.size == 0 or (int(raw.min()) >= element.lowest and int(raw.max()) <= element.highest)
    return raw.astype(element.dtype) if fits else None


def _raw_array(data: object) -> np.ndarray[Any, Any] | None:
    """Numbers in whatever type holds them; None for ragged lists, words and strings."""
    try:
        raw = np.array(data)
        if raw.dtype == object and all(type(item) in (int, float) for item in raw.flat):
            raw = raw.astype(np.float64)  # integers beyond 64 bits
    except (ValueError, OverflowError):
        return None
    return raw if raw.dtype.kind in "iufb" else None


def _float_array(raw: np.ndarray[Any, Any], element: ElementType) -> np.ndarray[Any, Any] | None:
    """Numbers as floats of a type; None where one is too large, or infinite and the type is not."""
    with np.errstate(all="ignore"):
        made = raw.astype(element.dtype)
        back = made.astype(np.float64)
    is_same = (np.isnan(raw) == np.isnan(back)) & (np.isinf(raw) == np.isinf(back))
    return made if is_same.all() else None

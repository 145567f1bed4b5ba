"""The metadata of a GGUF file: pairs of a key and a typed value."""

from __future__ import annotations

from dataclasses import dataclass

from nacre.base.binary.cursor import Broken
from nacre.base.excerpt import backquote
from nacre.llm.gguf.cursor import Cursor
from nacre.llm.gguf.limits import (
    MAX_ALIGNMENT,
    MAX_ARRAY_DEPTH,
    MAX_KEY_BYTES,
    MAX_PAIRS,
    MAX_TEXT_BYTES,
    MAX_VALUES,
)
from nacre.llm.rules.gguf import GGF05, GGF06, GGF07, GGF08

Value = int | float | bool | str | list["Value"]  # as JSON would have it

ALIGNMENT_KEY = "general.alignment"
_DEFAULT_ALIGNMENT = 32
# By the number of the type: its letter in `struct`.
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 10: "Q", 11: "q", 12: "d"}
_BOOL, _TEXT, _ARRAY = 7, 8, 9
_U32 = 4
_SMALLEST_PAIR = 8 + 1 + 4 + 1
# What a value of each type takes at least: texts have a length, arrays a type and a count.
_SMALLEST = {**dict(zip(_NUMBERS, (1, 1, 2, 2, 4, 4, 4, 8, 8, 8), strict=True))}
_SMALLEST |= {_BOOL: 1, _TEXT: 8, _ARRAY: 12}


@dataclass(frozen=True)
class Metadata:
    """The pairs in their order, and what the layout of the file follows from."""

    values: dict[str, Value]
    alignment: int


def read_metadata(cursor: Cursor, count: int) -> Metadata:
    """So many pairs; Broken where one is none."""
    reading = _Reading(cursor)
    values: dict[str, Value] = {}
    alignment = _DEFAULT_ALIGNMENT
    for _ in range(count):
        start = cursor.at
        key = cursor.text("a key", MAX_KEY_BYTES)
        if not key:
            raise Broken(GGF07, start, "a key is empty")
        if key in values:
            raise Broken(GGF07, start, f"the key {backquote(key)} stands there twice")
        type_at = cursor.at
        type_ = cursor.u32(f"the type of {backquote(key)}")
        values[key] = reading.value(type_, type_at, backquote(key), 0)
        if key == ALIGNMENT_KEY:
            alignment = _alignment(values[key], type_, type_at)
    return Metadata(values, alignment)


def read_pair_count(cursor: Cursor) -> int:
    """How many pairs there are, which must have their place in the bytes that are left."""
    return cursor.count(MAX_PAIRS, _SMALLEST_PAIR, "pairs of metadata")


def _alignment(value: Value, type_: int, at: int) -> int:
    if type_ != _U32 or not isinstance(value, int):
        message = f"`{ALIGNMENT_KEY}` is of type {type_}, expected {_U32}, a number of 32 bits"
        raise Broken(GGF08, at, message)
    if value < 1 or value & (value - 1) or value > MAX_ALIGNMENT:
        message = (
            f"`{ALIGNMENT_KEY}` is {value:,}, expected a power of two of at most {MAX_ALIGNMENT:,}"
        )
        raise Broken(GGF08, at, message)
    return value


class _Reading:
    """Values as they come, counted: a file may have so many and no more."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._left = MAX_VALUES

    def value(self, type_: int, at: int, what: str, depth: int) -> Value:
        """A value of a type, which stands at a byte of the file."""
        if type_ == _ARRAY:
            return self._array(what, depth)
        found: Value = self._values(type_, 1, at, what)[0]
        return found

    def _array(self, what: str, depth: int) -> list[Value]:
        cursor, at = self._cursor, self._cursor.at
        if depth == MAX_ARRAY_DEPTH:
            message = f"arrays of {what} lie {depth + 1} deep, at most {depth} are read"
            raise Broken(GGF06, at, message)
        type_ = cursor.u32(f"the type of the elements of {what}")
        smallest = _SMALLEST.get(type_)
        if smallest is None:
            raise _unknown_type(type_, at, f"elements of {what}")
        count = cursor.count(MAX_VALUES, smallest, f"elements of {what}")
        self._left -= count
        if self._left < 0:
            message = f"the arrays up to {what} have more than {MAX_VALUES:,} values"
            raise Broken(GGF05, at, message)
        if type_ == _ARRAY:
            return [self._array(what, depth + 1) for _ in range(count)]
        return self._values(type_, count, at, what)

    def _values(self, type_: int, count: int, at: int, what: str) -> list[Value]:
        if type_ in _NUMBERS:
            return list(self._cursor.numbers(_NUMBERS[type_], count, what))
        if type_ == _TEXT:
            return [self._cursor.text(what, MAX_TEXT_BYTES) for _ in range(count)]
        if type_ == _BOOL:
            return [self._bool(what) for _ in range(count)]
        raise _unknown_type(type_, at, what)

    def _bool(self, what: str) -> bool:
        start = self._cursor.at
        byte = self._cursor.take(1, what)[0]
        if byte > 1:
            raise Broken(GGF06, start, f"{what} has a boolean of {byte}, expected 0 or 1")
        return byte == 1


def _unknown_type(type_: int, at: int, what: str) -> Broken:
    return Broken(GGF06, at, f"{what}: there is no type {type_}, expected 0 to {max(_SMALLEST)}")

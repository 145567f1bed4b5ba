"""What records of a section share: texts, numbers, lists of integers, forms, and a heap of bytes.

Each is there once, in the order of its first use.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Iterable
from typing import Any

from nacre.base.binary.cursor import Broken
from nacre.base.diagnostics import InputError
from nacre.base.source import whole_file
from nacre.base.terms import fits_int64
from nacre.tcb.binary.words import NUMBERS, WORDS
from nacre.tcb.rules.binary import TCB16
from nacre.tcb.rules.image import TCB36

# How a value of an attribute is told apart in a list of integers.
INTEGER, NUMBER, FLAG, TEXT, LIST = range(5)


def refuse(message: str) -> InputError:
    """An image has a value that no file can have."""
    return InputError([TCB36.at(whole_file("<image>"), message)])


class WrittenPools:
    """Numbers for what is packed."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}
        self.numbers: dict[int, int] = {}
        self.lists: dict[tuple[int, ...], int] = {}
        self.forms: dict[type[object], dict[Hashable, int]] = {}
        self.heap = bytearray()

    def text(self, text: str) -> int:
        """A text's number: that of a word, or one behind them."""
        found = NUMBERS.get(text, self.texts.get(text))
        if found is not None:
            return found
        encode_text(text)
        return self.texts.setdefault(text, len(WORDS) + len(self.texts))

    def number(self, value: float) -> int:
        """A float's number, by its bits."""
        (bits,) = struct.unpack("<Q", struct.pack("<d", value))
        return self.numbers.setdefault(bits, len(self.numbers))

    def list_of(self, values: Iterable[int]) -> int:
        """The number of a list of integers."""
        key = tuple(map(require_int64, values))
        return self.lists.setdefault(key, len(self.lists))

    def form(self, of: type[object], row: Hashable) -> int:
        """The number of a row of a record's shared fields."""
        rows = self.forms.setdefault(of, {})
        return rows.setdefault(row, len(rows))

    def pairs(self, pairs: Iterable[tuple[str, Any]]) -> int:
        """The number of names with values: three integers each, as one list."""
        return self.list_of(
            part for name, value in pairs for part in (self.text(name), *self._typed(value))
        )

    def _typed(self, value: object) -> tuple[int, int]:
        if isinstance(value, bool):
            return FLAG, int(value)
        if isinstance(value, float):
            return NUMBER, self.number(value)
        if isinstance(value, str):
            return TEXT, self.text(value)
        if isinstance(value, tuple):
            return LIST, self.list_of(value)
        assert isinstance(value, int)
        return INTEGER, require_int64(value)


def require_int64(value: int) -> int:
    """An integer that a column can have."""
    if not fits_int64(value):
        raise refuse(f"the number {value:,} does not fit in 64 bits with a sign")
    return value


def encode_text(text: str) -> bytes:
    """A text as UTF-8."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise refuse(f"the text {text!a} is no Unicode") from None


class ReadPools:
    """What numbers stand for; `offset` is where a section begins that has wrong ones."""

    def __init__(self, offset: int, texts: list[str], heap: bytes) -> None:
        self._offset = offset
        self._texts = [*WORDS, *texts]
        self._heap = heap
        self._taken = 0
        self.numbers: list[float] = []
        self.lists: list[tuple[int, ...]] = []
        self.forms: dict[type[object], list[Any]] = {}
        self.terms: dict[int, Any] = {}  # what lists say that are shapes of terms

    def broken(self, message: str) -> Broken:
        """A number stands for nothing."""
        return Broken(TCB16, self._offset, message)

    def text(self, number: int) -> str:
        """The text of a number."""
        if not 0 <= number < len(self._texts):
            raise self.broken(f"there is no text {number:,}, only {len(self._texts):,}")
        return self._texts[number]

    def number(self, number: int) -> float:
        """The float of a number."""
        if not 0 <= number < len(self.numbers):
            raise self.broken(f"there is no float {number:,}, only {len(self.numbers):,}")
        return self.numbers[number]

    def list_of(self, number: int) -> tuple[int, ...]:
        """The list of a number."""
        if not 0 <= number < len(self.lists):
            raise self.broken(f"there is no list {number:,}, only {len(self.lists):,}")
        return self.lists[number]

    def form(self, of: type[object], number: int) -> Any:  # noqa: ANN401 - as its fields say
        """The shared values of a number."""
        rows = self.forms.get(of, [])
        if not 0 <= number < len(rows):
            raise self.broken(f"there is no form {number:,} of {of.__name__}, only {len(rows):,}")
        return rows[number]

    def pairs(self, number: int) -> tuple[tuple[str, Any], ...]:
        """The names and values of a number."""
        parts = self.list_of(number)
        if len(parts) % 3:
            raise self.broken("names with values are three integers each")
        return tuple(
            (self.text(parts[at]), self._typed(parts[at + 1], parts[at + 2]))
            for at in range(0, len(parts), 3)
        )

    def _typed(self, kind: int, payload: int) -> object:
        if kind == INTEGER:
            return payload
        if kind == NUMBER:
            return self.number(payload)
        if kind == FLAG and payload in (0, 1):
            return payload == 1
        if kind == TEXT:
            return self.text(payload)
        if kind == LIST:
            return self.list_of(payload)
        raise self.broken(f"{payload:,} is no value of kind {kind:,}")

    def take(self, count: int) -> bytes:
        """The next bytes of the heap."""
        if not 0 <= count <= len(self._heap) - self._taken:
            raise self.broken(f"{count:,} bytes are not in the heap of {len(self._heap):,}")
        self._taken += count
        return self._heap[self._taken - count : self._taken]

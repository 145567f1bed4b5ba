"""Bytes of a GGUF file one after the other, each step checked before it is taken."""

from __future__ import annotations

import struct
from typing import Any

from nacre.base.binary.cursor import Broken
from nacre.llm.rules.gguf import GGF04, GGF05, GGF06

_BYTE_ORDERS = {"little": "<", "big": ">"}
_CUT_SHORT = "the file may be a part of a download: compare its size with the original"


class Cursor:
    """A position in the bytes; numbers are of the file's byte order."""

    def __init__(self, view: memoryview, byte_order: str = "little") -> None:
        self._view = view
        self.at = 0
        self.byte_order = byte_order

    @property
    def remaining(self) -> int:
        """How many bytes are left."""
        return len(self._view) - self.at

    def require(self, size: int, what: str) -> None:
        """Refuse what asks for more bytes than there are."""
        if size > self.remaining:
            message = f"{what} needs {size:,} bytes, {self.remaining:,} are left"
            raise Broken(GGF04, self.at, message, _CUT_SHORT)

    def take(self, size: int, what: str) -> bytes:
        """So many bytes."""
        self.require(size, what)
        start = self.at
        self.at += size
        return bytes(self._view[start : self.at])

    def numbers(self, code: str, count: int, what: str) -> tuple[Any, ...]:
        """So many numbers of one type, by its letter in `struct`."""
        layout = f"{_BYTE_ORDERS[self.byte_order]}{count}{code}"
        size = count * struct.calcsize(f"<{code}")
        self.require(size, what)
        found = struct.unpack_from(layout, self._view, self.at)
        self.at += size
        return found

    def u32(self, what: str) -> int:
        """An unsigned number of 32 bits."""
        number: int = self.numbers("I", 1, what)[0]
        return number

    def u64(self, what: str) -> int:
        """An unsigned number of 64 bits."""
        number: int = self.numbers("Q", 1, what)[0]
        return number

    def count(self, most: int, smallest: int, what: str) -> int:
        """A count of things that each take some bytes at least, of which there must be as many."""
        start = self.at
        found = self.u64(f"the number of {what}")
        if found * smallest > self.remaining:
            needed = f"{found:,} need {found * smallest:,} bytes or more"
            message = f"{what}: {needed}, {self.remaining:,} are left"
            raise Broken(GGF04, start, message, _CUT_SHORT)
        if found > most:
            raise Broken(GGF05, start, f"{what}: {found:,}, at most {most:,} are read")
        return found

    def text(self, what: str, most: int) -> str:
        """A length of 64 bits, and UTF-8."""
        start = self.at
        length = self.u64(f"the length of {what}")
        if length > self.remaining:
            message = f"{what} needs {length:,} bytes, {self.remaining:,} are left"
            raise Broken(GGF04, start, message, _CUT_SHORT)
        if length > most:
            message = f"{what} has {length:,} bytes, at most {most:,} are read"
            raise Broken(GGF05, start, message)
        raw = self.take(length, what)
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            message = f"byte 0x{raw[error.start]:02x} of {what} is no UTF-8"
            raise Broken(GGF06, start + 8 + error.start, message) from None

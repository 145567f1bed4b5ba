"""Bounded reads: nothing is taken that is not there."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeVar

from nacre.base.rules import Rule
from nacre.nac.format.positions import Position
from nacre.nac.rules.container import NAC04, NAC12, NAC13, NAC15
from nacre.nac.spec.header import MOST_RECORDS

Record = TypeVar("Record")


class Broken(Exception):  # noqa: N818 - carries a finding, not a failure of ours
    """What is wrong with a part of a file, and where. The part cannot be read on."""

    def __init__(self, rule: Rule, place: Position, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.rule = rule
        self.position = place
        self.message = message
        self.help = help


class Cursor:
    """Reads on in a stretch of a file; `Broken` where it ends too early."""

    def __init__(self, view: memoryview, section: str = "", at: int = 0) -> None:
        self._view = view
        self._section = section
        self._end = len(view)
        self.at = at

    @property
    def remaining(self) -> int:
        """The bytes that are left."""
        return self._end - self.at

    def position(self, offset: int | None = None, instruction: int | None = None) -> Position:
        """The place of the next byte, or of another one."""
        return Position(self.at if offset is None else offset, self._section, instruction)

    def take(self, length: int, what: str) -> memoryview:
        """So many bytes, not copied."""
        if length > self.remaining:
            message = f"{what} needs {length:,} bytes, {self.remaining:,} are left"
            raise Broken(NAC04, self.position(), message)
        start = self.at
        self.at = start + length
        return self._view[start : self.at]

    def u8(self, what: str) -> int:
        """A byte."""
        return self.take(1, what)[0]

    def u16(self, what: str) -> int:
        """Two bytes."""
        return int.from_bytes(self.take(2, what), "little")

    def u32(self, what: str) -> int:
        """Four bytes."""
        return int.from_bytes(self.take(4, what), "little")

    def u64(self, what: str) -> int:
        """Eight bytes."""
        return int.from_bytes(self.take(8, what), "little")

    def i16s(self, count: int, what: str) -> tuple[int, ...]:
        """Signed numbers of two bytes."""
        return struct.unpack(f"<{count}h", self.take(2 * count, what)) if count else ()

    def u32s(self, count: int, what: str) -> tuple[int, ...]:
        """Numbers of four bytes."""
        return struct.unpack(f"<{count}I", self.take(4 * count, what)) if count else ()

    def text(self, length: int, what: str) -> str:
        """A text of so many bytes."""
        start = self.at
        raw = bytes(self.take(length, what))
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            offset = start + error.start
            message = f"byte 0x{raw[error.start]:02x} of {what} is no UTF-8"
            raise Broken(NAC13, self.position(offset), message) from None

    def records(self, least: int, what: str, read: Callable[[], Record]) -> tuple[Record, ...]:
        """A count, then so many records of at least so many bytes each."""
        start = self.at
        count = self.u32(f"the number of {what}")
        if MOST_RECORDS < count <= self.remaining // least:
            message = f"{count:,} {what}, at most {MOST_RECORDS:,} can be told apart"
            raise Broken(NAC15, self.position(start), message)
        return self.take_records(count, least, what, read, start)

    def take_records(
        self, count: int, least: int, what: str, read: Callable[[], Record], start: int
    ) -> tuple[Record, ...]:
        """So many records; refused before the first where they cannot all be there."""
        if count * least > self.remaining:
            needed = f"{count:,} {what} need {count * least:,} bytes or more"
            message = f"{needed}, {self.remaining:,} are left"
            raise Broken(NAC12, self.position(start), message)
        return tuple([read() for _ in range(count)])

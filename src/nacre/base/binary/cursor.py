"""Bytes read and written one after the other; reading is bounded and says what it was after."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nacre.base.rules import Rule

_LONGEST_VARINT = 10  # bytes, for 64 bits
_UNLIMITED = 1 << 62


class Broken(Exception):  # noqa: N818 - a way out of the reader, which makes it a finding
    """A file breaks a promise; `offset` is the byte where that shows."""

    def __init__(self, rule: Rule, offset: int, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.rule, self.offset, self.message, self.help = rule, offset, message, help


@dataclass(frozen=True, slots=True)
class ByteRules:
    """The rules of a format that its bytes can break, whatever they are about."""

    damaged: Rule  # they end too early, or too late
    not_canonical: Rule  # what they say is written in another way
    too_large: Rule
    too_large_help: str | None = None


class ByteWriter:
    """Collects bytes."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def byte(self, value: int) -> None:
        """One byte."""
        self._parts.append(bytes((value,)))

    def raw(self, data: bytes) -> None:
        """Bytes as they are."""
        self._parts.append(data)

    def varint(self, value: int) -> None:
        """An unsigned number, seven bits a byte, the lowest first."""
        encoded = bytearray()
        while value > 0x7F:
            encoded.append(value & 0x7F | 0x80)
            value >>= 7
        encoded.append(value)
        self._parts.append(bytes(encoded))

    def varints(self, values: Iterable[int]) -> None:
        """Several of them."""
        for value in values:
            self.varint(value)

    def text(self, text: str) -> None:
        """A length in bytes, and UTF-8."""
        raw = text.encode()
        self.varint(len(raw))
        self.raw(raw)

    def content(self) -> bytes:
        """All that was written."""
        return b"".join(self._parts)


class ByteReader:
    """A position in bytes up to an end; every step is checked before it is taken."""

    def __init__(
        self, data: bytes, rules: ByteRules, start: int = 0, end: int | None = None
    ) -> None:
        self._data = data
        self.rules = rules
        self.at = start
        self.end = len(data) if end is None else end
        # Things of one kind, and characters of text, that its bytes may stand for.
        self.most = self.most_text = _UNLIMITED

    @property
    def left(self) -> int:
        """How many bytes are left."""
        return self.end - self.at

    def take(self, count: int, what: str) -> bytes:
        """So many bytes."""
        if count > self.left:
            message = f"{what} needs {count:,} bytes, {self.left:,} are left"
            raise Broken(self.rules.damaged, self.at, message)
        start = self.at
        self.at += count
        return self._data[start : self.at]

    def byte(self, what: str) -> int:
        """One byte."""
        return self.take(1, what)[0]

    def varint(self, what: str) -> int:
        """An unsigned number of 64 bits."""
        start, value, shift = self.at, 0, 0
        while True:
            byte = self.byte(what)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 63:
                raise Broken(
                    self.rules.not_canonical, start, f"{what} has a number of more than 64 bits"
                )
        if value >> 64 or (byte == 0 and shift):
            raise Broken(
                self.rules.not_canonical,
                start,
                f"{what} has a number that is not in its shortest form",
            )
        return value

    def varints(self, count: int, what: str) -> npt.NDArray[np.uint64]:
        """So many numbers."""
        if count < 16:
            return np.array([self.varint(what) for _ in range(count)], np.uint64)
        if count > self.left:
            raise Broken(
                self.rules.damaged,
                self.at,
                f"{what} needs {count:,} numbers, {self.left:,} bytes left",
            )
        start = self.at
        stop = min(self.end, start + count * _LONGEST_VARINT)
        raw = np.frombuffer(self._data, np.uint8, stop - start, start)
        ends = np.flatnonzero(raw < 0x80)[:count]
        if len(ends) < count:
            raise Broken(self.rules.damaged, start, f"{what} ends before its last number")
        sizes = np.diff(ends, prepend=-1)
        if sizes.max() >= _LONGEST_VARINT or ((raw[ends] == 0) & (sizes > 1)).any():
            return np.array([self.varint(what) for _ in range(count)], np.uint64)
        self.at = start + int(ends[-1]) + 1
        used = raw[: ends[-1] + 1]
        firsts = ends - sizes + 1
        shifts = 7 * (np.arange(len(used)) - np.repeat(firsts, sizes))
        parts = (used & 0x7F).astype(np.uint64) << shifts.astype(np.uint64)
        return np.add.reduceat(parts, firsts)

    def text(self, what: str, most: int) -> str:
        """A length in bytes, and UTF-8."""
        start = self.at
        length = self.varint(what)
        if length > most:
            raise Broken(
                self.rules.too_large,
                start,
                f"{what} has {length:,} bytes, at most {most:,} are read",
            )
        return decode_text(self.take(length, what), self.rules, start, what)

    def within(self, size: int) -> ByteReader:
        """The next bytes, which are there, as a reader of their own; this one goes behind them."""
        reader = ByteReader(self._data, self.rules, self.at, self.at + size)
        reader.most, reader.most_text = self.most, self.most_text
        self.at += size
        return reader

    def require_most(self, count: int, what: str) -> None:
        """Refuse to make more than the bytes may stand for."""
        if count > self.most:
            message = f"{count:,} {what}; its bytes may stand for {self.most:,}"
            raise Broken(self.rules.too_large, self.at, message, self.rules.too_large_help)

    def require_end(self, what: str) -> None:
        """Refuse bytes that nothing reads."""
        if self.left:
            raise Broken(self.rules.damaged, self.at, f"{self.left:,} bytes are left behind {what}")


def decode_text(raw: bytes, rules: ByteRules, offset: int, what: str) -> str:
    """UTF-8 as text."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        message = f"byte 0x{raw[error.start]:02x} of {what} is no UTF-8"
        raise Broken(rules.damaged, offset, message) from None

"""Tables of SentencePiece: texts that become others, in a double array over their bytes.

The table is asked for graphemes of up to five bytes, then for each character. It answers with the
shortest text in it that the question begins with, and that answer stands for all of the question.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from functools import cache, cached_property

from nacre.nac.tisa.character_data import Ranges
from nacre.nac.tisa.text.grapheme_data import CONTROLS, JOINING, LEADING
from nacre.nac.tisa.text.tracing import Origins, TextChange, follow_changes

_LONGEST = 5  # bytes of a grapheme that is asked for as a whole
_MOST_KNOWN = 1 << 16
_LONGEST_KEY = 256  # characters; the longest one of SentencePiece's own tables has 18
# What is not ASCII, with a character on both sides, since graphemes may have one of ASCII.
_ASCII = r"(?:\r\n|[\x00-\x7f])"
_OTHERS = r"[^\x00-\x7f]+"
_BESIDE_ASCII = re.compile(f"{_ASCII}?{_OTHERS}(?:{_ASCII}{_OTHERS})*{_ASCII}?")


class CharsmapError(Exception):
    """Why some bytes are no table."""


def _in_class(listed: Ranges) -> str:
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in listed)


@cache
def _graphemes() -> re.Pattern[str]:
    """Graphemes of more than one character; a control character is alone."""
    joining, leading, alone = map(_in_class, (JOINING, LEADING, CONTROLS))
    core = f"(?:[^{leading}{alone}]|[{leading}](?![^{alone}]))"
    return re.compile(f"\\r\\n|[{leading}]+{core}[{joining}]*|[^{alone}][{joining}]+", re.DOTALL)


class Charsmap:
    """A table that is asked, and remembers its answers."""

    def __init__(self, raw: bytes) -> None:
        if len(raw) < 8:
            raise CharsmapError(f"a table has at least 8 bytes, not {len(raw)}")
        (size,) = struct.unpack_from("<I", raw)
        if size % 4 or not 4 <= size <= len(raw) - 4:
            raise CharsmapError(f"a table of {len(raw):,} bytes has no array of {size:,}")
        self._units = struct.unpack_from(f"<{size // 4}I", raw, 4)
        self._texts = raw[4 + size :]
        try:
            self._texts.decode("utf-8")
        except UnicodeDecodeError:
            raise CharsmapError("the texts of a table are no UTF-8") from None
        self._known: dict[str, str | None] = {}
        self._foreign: set[str] = set()  # characters that nothing in the table begins with

    def lookup(self, text: str) -> str | None:
        """What the shortest text of the table becomes with which this one begins."""
        if text not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[text] = self._find(text.encode("utf-8"))
        return self._known[text]

    def _find(self, key: bytes) -> str | None:
        units = self._units
        at = _offset(units[0])
        for byte in key:
            if not byte:
                return None
            at ^= byte
            unit = units[at] if at < len(units) else 0
            if unit & 0x800000FF != byte:
                return None
            at ^= _offset(unit)
            if unit >> 8 & 1:
                return self._text(units[at] & 0x7FFFFFFF if at < len(units) else len(self._texts))
        return None

    def longest(self, text: str, at: int) -> tuple[str, int] | None:
        """What the longest text of the table becomes that stands at a place, and its end."""
        if text[at] in self._foreign:
            return None
        best: tuple[int, int] | None = None
        node = _offset(self._units[0])
        for end in range(at, min(at + _LONGEST_KEY, len(text))):
            found = self._walk(node, text[end].encode("utf-8"))
            if found is None:
                if end == at and len(self._foreign) < _MOST_KNOWN:
                    self._foreign.add(text[at])
                break
            node, value = found
            if value is not None:
                best = value, end + 1
        return None if best is None else (self._text(best[0]), best[1])

    def _walk(self, node: int, raw: bytes) -> tuple[int, int | None] | None:
        """Where some bytes lead from a node, and the place of the text of what ends there."""
        units = self._units
        unit = 0
        for byte in raw:
            node ^= byte
            unit = units[node] if node < len(units) else 0
            if not byte or unit & 0x800000FF != byte:
                return None
            node ^= _offset(unit)
        if not unit >> 8 & 1:
            return node, None
        return node, units[node] & 0x7FFFFFFF if node < len(units) else len(self._texts)

    def _text(self, start: int) -> str:
        end = self._texts.find(b"\0", start)
        return self._texts[start : end if end >= 0 else None].decode("utf-8", errors="replace")

    def answers(self, text: str) -> Iterator[tuple[str, str | None]]:
        """Parts of a text, and what the table has for each; ASCII that stays is one part."""
        at = 0
        for match in _BESIDE_ASCII.finditer(text):
            yield from self._plain_answers(text[at : match.start()])
            yield from self._careful_answers(match.group())
            at = match.end()
        yield from self._plain_answers(text[at:])

    def _plain_answers(self, text: str) -> Iterator[tuple[str, str | None]]:
        at = 0
        for match in self._changing_ascii.finditer(text):
            yield text[at : match.start()], None
            yield from self._careful_answers(match.group())
            at = match.end()
        yield text[at:], None

    def _careful_answers(self, text: str) -> Iterator[tuple[str, str | None]]:
        at = 0
        for match in _graphemes().finditer(text):
            start, end = match.span()
            yield from ((c, self.lookup(c)) for c in text[at:start])
            yield from self._grapheme(match.group())
            at = end
        yield from ((c, self.lookup(c)) for c in text[at:])

    def _grapheme(self, grapheme: str) -> Iterator[tuple[str, str | None]]:
        if len(grapheme.encode("utf-8")) <= _LONGEST:
            made = self.lookup(grapheme)
            if made is not None:
                yield grapheme, made
                return
        yield from ((c, self.lookup(c)) for c in grapheme)

    def apply(self, text: str) -> str:
        """The text that the table makes of one."""
        if text.isascii() and "\r\n" not in text:
            return text.translate(self._ascii)
        return "".join(part if made is None else made for part, made in self.answers(text))

    @cached_property
    def _ascii(self) -> dict[int, str]:
        found = {point: self.lookup(chr(point)) for point in range(0x80)}
        return {p: made for p, made in found.items() if made is not None and made != chr(p)}

    @cached_property
    def _changing_ascii(self) -> re.Pattern[str]:
        return re.compile("|".join(["\r\n", *(re.escape(chr(point)) for point in self._ascii)]))

    def trace(self, text: str) -> tuple[str, Origins]:
        """The same with origins."""
        if text.isascii() and not self._changing_ascii.search(text):
            return text, None
        counted: list[int] = []
        parts: list[str] = []
        for part, made in self.answers(text):
            parts.append(part if made is None else made)
            _count(counted, len(part), len(parts[-1]))
        return "".join(parts), follow_changes(counted, len(text))

    @property
    def change(self) -> TextChange:
        """What a step does."""
        return TextChange(self.apply, self.trace)


def _offset(unit: int) -> int:
    return unit >> 10 << ((unit & 1 << 9) >> 6)


def _count(counted: list[int], before: int, after: int) -> None:
    """Add a part: more characters are put in at its end, fewer are dropped behind its last one.

    A part that vanishes is counted at the character before it, wherever that came from, as the
    `tokenizers` library does; at the start of a text it is not counted at all.
    """
    counted += [0] * min(before, after) + [1] * (after - before)
    if after < before and counted:
        counted[-1] -= before - after

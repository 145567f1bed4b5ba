"""Ids that come one after another become text as soon as their characters are whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

_HALF = "\ufffd"  # what the bytes of half a character look like
_MOST_HELD = 3  # a character has four bytes
_MOST_IDS = 64  # that are decoded again with a new one
_NEIGHBOURS = 8  # that are left of so many


class TextStream:
    """Gives the text of ids piece by piece; what it gave is never taken back.

    The ids before a new one are decoded with it, as far as the last place where a character ended,
    since decoders look at neighbours.
    """

    def __init__(
        self,
        decode: Callable[[list[int]], str],
        skipped: frozenset[int],
        byte_tokens: Mapping[int, int],
    ) -> None:
        self._decode = decode
        self._skipped = skipped
        self._bytes = byte_tokens  # bytes of ids; a decoder takes those in a row as one text
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._ids: list[int] = []
        self._anchor: list[int] = []  # the last ids that had a text when they were kept
        self._whole = 0  # ids up to the last place where a character ended
        self._given = 0  # characters of their text that were given
        self._waiting = b""  # bytes of a character that is not whole

    def push(self, ids: int | Iterable[int]) -> str:
        """The text that one more id, or several, make whole; empty while a character is not."""
        return "".join(self._push(index) for index in (ids if isinstance(ids, Iterable) else [ids]))

    def _push(self, index: int) -> str:
        if index in self._skipped:
            return ""
        self._decode([index])  # refuses what is no id, before the stream has it
        self._ids.append(index)
        byte = self._bytes.get(index)
        self._waiting = b"" if byte is None else self._waiting + bytes([byte])
        if _is_begun(self._waiting):
            return ""
        self._waiting = b""
        text = self._decode(self._ids)
        end = _whole_part(text)
        new = text[self._given : end]
        self._given = max(self._given, end)
        if new and end == len(text):
            self._forget(self._whole)
        elif len(self._ids) > _MOST_IDS:
            self._forget(len(self._ids) - _NEIGHBOURS)
        return new

    def _forget(self, count: int) -> None:
        kept = self._ids[count:]
        if self._decode(kept):
            self._anchor = kept
        else:  # a decoder would take what comes next for the start of a text
            kept = self._anchor + kept
        self._ids = kept
        self._whole = len(kept)
        self._given = _whole_part(self._decode(kept))

    def finish(self) -> str:
        """What is left, also if it is half of a character; the stream begins anew."""
        text = self._decode(self._ids)[self._given :]
        self._begin_anew()
        return text


def _is_begun(raw: bytes) -> bool:
    """Whether bytes may become one character with more of them."""
    if not raw:
        return False
    lead = raw[0]
    size = 1 + (0xC2 <= lead <= 0xF4) + (0xE0 <= lead <= 0xF4) + (0xF0 <= lead <= 0xF4)
    return len(raw) < size and all(0x80 <= byte < 0xC0 for byte in raw[1:])


def _whole_part(text: str) -> int:
    """How much of a text does not look like half of a character at its end."""
    halves = len(text) - len(text.rstrip(_HALF))
    return len(text) - min(halves, _MOST_HELD)

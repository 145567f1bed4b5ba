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
    since decoders look at neighbours. Some decoders take bytes in a row for text only if all of
    them are UTF-8: of such a row the characters before the first wrong byte were given already,
    and stay; every byte from there on is unknown.
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
        self._given = ""  # the beginning of their text, which was given
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
        text = self._text()
        end = _whole_part(text)
        new = text[len(self._given) : end]
        self._given += new
        if new and end == len(text):
            self._keep(self._ids[self._whole :])
        elif len(self._ids) > _MOST_IDS:
            self._keep(self._neighbours())
            self._whole = 0  # the last of them may be half of a character
        return new

    def _text(self) -> str:
        """The text of the ids, without characters that were given and are none any more."""
        text = self._decode(self._ids)
        if self._bytes and not text.startswith(self._given):
            del self._ids[: self._whole]
            self._whole, self._given = 0, ""
            text = self._decode(self._ids)
        return text

    def _keep(self, kept: list[int]) -> None:
        if self._decode(kept):
            self._anchor = kept
        else:  # a decoder would take what comes next for the start of a text
            kept = self._anchor + kept
        self._ids = kept
        text = self._decode(kept)
        self._whole, self._given = len(kept), text[: _whole_part(text)]

    def _neighbours(self) -> list[int]:
        """The last ids, behind the first bytes of their row: these are what is wrong with it."""
        start = cut = self._cut()
        if self._ids[cut] in self._bytes:
            while start and self._ids[start - 1] in self._bytes:
                start -= 1
        return self._ids[start : min(start + _MOST_HELD + 1, cut)] + self._ids[cut:]

    def _cut(self) -> int:
        """A place before the last ids, between two characters where there is such a place."""
        usual, text = len(self._ids) - _NEIGHBOURS, self._decode(self._ids)
        for cut in range(usual, usual - _MOST_HELD - 1, -1):
            if self._decode(self._ids[:cut]) + self._decode(self._ids[cut:]) == text:
                return cut
        return usual

    def finish(self) -> str:
        """What is left, also if it is half of a character; the stream begins anew."""
        text = self._text()[len(self._given) :]
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

"""Where the characters of a fragment stand in the original text."""

from __future__ import annotations

from functools import cached_property

from nacre.nac.tisa.text.tracing import Origins

Span = tuple[int, int]
# A span for each character; a number: one after another from there; None: nobody asks.
Spans = list[Span] | int | None


def cut_spans(spans: Spans, start: int, end: int) -> Spans:
    """Those of a part."""
    if spans is None:
        return None
    return spans + start if isinstance(spans, int) else spans[start:end]


def move_spans(spans: Spans, origins: Origins) -> Spans:
    """Those of a text that another has become."""
    if origins is None or spans is None:
        return spans
    if isinstance(spans, int):
        return [(spans + at, spans + at + 1) if at >= 0 else (spans, spans) for at in origins]
    start = spans[0][0] if spans else 0
    return [spans[at] if at >= 0 else (start, start) for at in origins]


def span_of(spans: Spans, start: int, end: int) -> Span:
    """The place of some characters."""
    if spans is None:
        return 0, 0
    if isinstance(spans, int):
        return spans + start, spans + end
    if start < end:
        return spans[start][0], spans[end - 1][1]
    return (spans[start][0],) * 2 if start < len(spans) else (start, end)


def is_at_start(spans: Spans) -> bool:
    """Whether a fragment begins where the original text begins."""
    if isinstance(spans, int):
        return spans == 0
    return not spans or spans[0][0] == 0


class BytePositions:
    """Where bytes of a text stand among its characters.

    Bytes that a fragment does not have are taken for some of the whole text, which is what the
    `tokenizers` library does.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _owners(self) -> list[int]:
        return [at for at, c in enumerate(self._text) for _ in range(len(c.encode("utf-8")))]

    def span(self, start: int, end: int) -> Span:
        """The place of some bytes; what it is given where the text does not have the first."""
        owners, size = self._owners, len(self._owners)
        if start >= size:
            return start, end
        if end < size:
            return owners[start], owners[end]
        return owners[start], (owners[end - 1] if end == size else owners[start] + 1) + 1

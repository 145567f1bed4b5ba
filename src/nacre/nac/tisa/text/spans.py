"""Where the characters of a fragment stand in the original text."""

from __future__ import annotations

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

"""What lies in a memory while which layers run, and where something more finds room."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Span(NamedTuple):
    """Bytes of a memory, from the first layer that needs them to the last."""

    begin: int
    end: int
    first: int
    last: int


class OccupiedSpans:
    """The spans of a memory, found by layer.

    Most live for a few layers, whatever the length of the model: those that are alive with one are
    looked up by where and for how long they live, so that a thousand steps of a recurrence take a
    thousand times as long as one, not a million times.
    """

    def __init__(self) -> None:
        self._spans: list[Span] = []
        # By the size of their lives in powers of two; then by the place of their beginning in them.
        self._by_life: dict[int, dict[int, list[Span]]] = {}

    def __iter__(self) -> Iterator[Span]:
        return iter(self._spans)

    def add(self, begin: int, size: int, first: int, last: int) -> None:
        """Bytes that are taken while these layers run."""
        span = Span(begin, begin + size, first, last)
        self._spans.append(span)
        level = (last - first).bit_length()
        self._by_life.setdefault(level, {}).setdefault(first >> level, []).append(span)

    def lowest_gap(self, size: int, first: int, last: int) -> int:
        """The lowest offset at which nothing else lives at the same time."""
        offset = 0
        for span in sorted(self._alive_spans(first, last)):
            if offset + size <= span.begin:
                break
            offset = max(offset, span.end)
        return offset

    @property
    def end(self) -> int:
        """Where all that was ever there ends."""
        return max((span.end for span in self._spans), default=0)

    def _alive_spans(self, first: int, last: int) -> Iterator[Span]:
        for level, by_place in self._by_life.items():
            # A life is shorter than a place of its level: it reaches into the next one at most.
            places = range((first >> level) - 1, (last >> level) + 1)
            for place in by_place if len(places) > len(by_place) else places:
                for span in by_place.get(place, ()):
                    if span.first <= last and span.last >= first:
                        yield span

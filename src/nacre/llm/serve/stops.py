"""Texts at which an answer ends: found across pieces, and never shown in part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


class StopTexts:
    """Pieces up to the first of some texts; afterwards, whether one was found."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = stops
        self.is_found = False

    def before_stop(self, pieces: Iterable[str]) -> Iterator[str]:
        """The pieces before it; what may be its beginning waits for the next one."""
        held = ""
        for piece in pieces:
            held += piece
            places = [at for stop in self._stops if (at := held.find(stop)) >= 0]
            if places:
                self.is_found = True
                yield held[: min(places)]
                return
            waiting = self._beginning_of_stop(held)
            if len(held) > waiting:
                yield held[: len(held) - waiting]
                held = held[len(held) - waiting :]
        if held:
            yield held

    def _beginning_of_stop(self, text: str) -> int:
        """How many letters at the end may be the beginning of a stop."""
        longest = max(map(len, self._stops), default=1) - 1
        for count in range(min(longest, len(text)), 0, -1):
            if any(stop.startswith(text[-count:]) for stop in self._stops):
                return count
        return 0

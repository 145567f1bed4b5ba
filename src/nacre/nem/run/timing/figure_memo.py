"""Results that depend on figures, kept by the figures that were looked at on the way to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Generic, TypeVar

from nacre.nem.run.timing.profile import TimingProfile

Key = tuple[str, str]  # unit and figure
T = TypeVar("T")

_MOST_KEPT = 4096  # results of one memo


class FigureMemo(Generic[T]):
    """A function of a profile that works a result out again only where a figure changed."""

    def __init__(self, work: Callable[[TimingProfile], T]) -> None:
        self._work = work
        self._known: dict[tuple[Key, ...], dict[tuple[int | None, ...], T]] = {}
        self._count = 0

    def __call__(self, profile: TimingProfile) -> T:
        """The result with these figures; profiles have no `lanes`, or the same ones."""
        for read, known in self._known.items():
            values = tuple([profile.figures.get(key) for key in read])
            if values in known:
                return known[values]
        figures = _ReadFigures(profile.figures)
        result = self._work(replace(profile, figures=figures))
        if self._count >= _MOST_KEPT:
            self._known, self._count = {}, 0
        read = tuple(sorted(figures.read))
        values = tuple([profile.figures.get(key) for key in read])
        self._known.setdefault(read, {})[values] = result
        self._count += 1
        return result


class _ReadFigures(Mapping[Key, int]):
    """Figures that remember which of them were looked at, there or not."""

    def __init__(self, figures: Mapping[Key, int]) -> None:
        self._figures = figures
        self.read: set[Key] = set()

    def __getitem__(self, key: Key) -> int:
        self.read.add(key)
        return self._figures[key]

    def __iter__(self) -> Iterator[Key]:
        self.read.update(self._figures)
        return iter(self._figures)

    def __len__(self) -> int:
        return len(self._figures)

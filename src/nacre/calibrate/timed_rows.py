"""Times of all rows as a function of figures, with what was worked out before kept.

A time depends on no more than the figures that the timed machine looked at on the way to it. So
rows are timed again only where one of those has changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from nacre.base.diagnostics import InternalError
from nacre.base.stages import watch_stages
from nacre.calibrate.free_figures import FreeFigure, Key
from nacre.calibrate.measurements import MOST_CYCLES
from nacre.calibrate.subjects import LoadedSubject
from nacre.nem.run.timing.profile import TimingProfile, timing_profile
from nacre.nem.run.timing.result import TimedResult
from nacre.nem.run.timing.timeline import time_steps

Floats = npt.NDArray[np.float64]
Values = tuple[int, ...]  # of the free figures, in their order

CLOCK: Key = ("NMU", "clock")  # in MHz; cycles are counted in it
_MOST_KEPT = 2_000_000  # times; a few hundred bytes each


class _ReadFigures(Mapping[Key, int]):
    """Figures that remember which of them were looked at."""

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


@dataclass(eq=False)
class TimedRows:
    """The rows of a fit: their subjects, and times that are known already.

    Times are in cycles, or in microseconds by the clock that cycles are counted in.
    """

    subjects: Sequence[LoadedSubject]
    index: Sequence[int]  # of each row among the subjects
    in_cycles: Sequence[bool]  # of each row
    free: Sequence[FreeFigure]
    fixed: Mapping[Key, int] = field(default_factory=dict)
    evaluations: int = 0
    # By subject: which free figures were looked at, and times by their values.
    _known: list[dict[tuple[int, ...], dict[Values, float]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rows = np.array(self.index, np.int64)
        self._in_cycles = np.array(self.in_cycles, np.bool_)
        self._places = {(f.unit, f.key): place for place, f in enumerate(self.free)}
        self._known = [{} for _ in self.subjects]

    def times(self, values: Values) -> Floats:
        """The time of every row with these values of the free figures."""
        if self.evaluations > _MOST_KEPT:
            self._known, self.evaluations = [{} for _ in self.subjects], 0
        profile = self.profile(values)
        places = range(len(self._known))
        with watch_stages():  # of single timings nobody is told
            found = [self._subject_cycles(place, values, profile) for place in places]
        return self._in_units(found, profile)

    def exact_times(self, values: Values) -> Floats:
        """The same, timed anew; InternalError where what was kept differs from it."""
        profile = self.profile(values)
        with watch_stages():
            exact = [self._time(subject, profile) for subject in self.subjects]
        times = self._in_units(exact, profile)
        if not np.array_equal(times, self.times(values)):
            raise InternalError("times depend on figures that the timed machine did not look at")
        return times

    def _in_units(self, by_subject: Sequence[float], profile: TimingProfile) -> Floats:
        cycles = np.array(by_subject, np.float64)[self._rows]
        return np.where(self._in_cycles, cycles, cycles / (profile.get(*CLOCK) or 1))

    def profile(self, values: Values) -> TimingProfile:
        """The figures that hold with these values."""
        overrides: dict[str, dict[str, int]] = {}
        for (unit, key), value in self.fixed.items():
            overrides.setdefault(unit, {})[key] = value
        for figure, value in zip(self.free, values, strict=True):
            overrides.setdefault(figure.unit, {})[figure.key] = value
        return timing_profile(self.subjects[0].device, overrides)

    def _subject_cycles(self, place: int, values: Values, profile: TimingProfile) -> float:
        known = self._known[place]
        for read, times in known.items():
            time = times.get(tuple(values[i] for i in read))
            if time is not None:
                return time
        figures = _ReadFigures(profile.figures)
        time = self._time(self.subjects[place], replace(profile, figures=figures))
        read = tuple(sorted(self._places[key] for key in figures.read & self._places.keys()))
        known.setdefault(read, {})[tuple(values[i] for i in read)] = time
        self.evaluations += 1
        return time

    @staticmethod
    def _time(subject: LoadedSubject, profile: TimingProfile) -> float:
        result = TimedResult(time_steps(subject.steps, subject.device, profile))
        return MOST_CYCLES if result.timeline.is_stuck else float(max(1, result.cycles))

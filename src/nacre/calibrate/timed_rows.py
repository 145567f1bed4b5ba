"""Times of all rows as a function of figures, with what was worked out before kept.

A time depends on no more than the figures that the timed machine looked at on the way to it. So
rows are timed again only where one of those has changed. A small step of one figure changes the
time of a large plan by what it changes of the tasks on its critical path, as long as that stays the
path: this takes no timing at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from nacre.base.diagnostics import InternalError
from nacre.base.loops.machine_code import is_available
from nacre.base.stages import watch_stages
from nacre.base.term_columns import Column
from nacre.calibrate.free_figures import FreeFigure, Key
from nacre.calibrate.measurements import MOST_CYCLES
from nacre.calibrate.subjects import LoadedSubject
from nacre.nem.run.timing.critical import critical_path
from nacre.nem.run.timing.figure_memo import FigureMemo
from nacre.nem.run.timing.profile import TimingProfile, timing_profile
from nacre.nem.run.timing.result import TimedResult
from nacre.nem.run.timing.timeline import Timeline, time_steps

Floats = npt.NDArray[np.float64]
Values = tuple[int, ...]  # of the free figures, in their order

CLOCK: Key = ("NMU", "clock")  # in MHz; cycles are counted in it
LARGE_STEPS = 2_000  # of a plan whose slopes are those of its critical path
COSTLY_STEPS = 20_000  # of all plans, above which a fit looks no further than slopes lead


@dataclass(frozen=True, slots=True)
class _Timed:
    """The cycles of a plan, and of a large one how many steps of each kind are on its path."""

    cycles: float
    path: Column | None
    length: float = 0.0  # of the path, with the call


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

    def __post_init__(self) -> None:
        self._rows = np.array(self.index, np.int64)
        self._in_cycles = np.array(self.in_cycles, np.bool_)
        self._timed = [FigureMemo(partial(self._time, subject)) for subject in self.subjects]

    def times(self, values: Values) -> Floats:
        """The time of every row with these values of the free figures."""
        profile = self.profile(values)
        with watch_stages():  # of single timings nobody is told
            found = [timed(profile).cycles for timed in self._timed]
        return self._in_units(found, profile)

    def exact_times(self, values: Values) -> Floats:
        """The same, timed anew; InternalError where what was kept differs from it."""
        profile = self.profile(values)
        with watch_stages():
            exact = [_cycles(time_steps(s.steps, s.device, profile)) for s in self.subjects]
        times = self._in_units(exact, profile)
        if not np.array_equal(times, self.times(values)):
            raise InternalError("times depend on figures that the timed machine did not look at")
        return times

    @property
    def is_costly(self) -> bool:
        """Whether one timing of all rows takes seconds."""
        return sum(subject.steps.count for subject in self.subjects) > COSTLY_STEPS

    def times_near(self, values: Values, near: Values) -> Floats:
        """Times with values near to others: of large plans, by the path that is critical there."""
        profile, other = self.profile(values), self.profile(near)
        places = range(len(self.subjects))
        with watch_stages():
            found = [self._cycles_near(place, profile, other) for place in places]
        return self._in_units(found, other)

    def _cycles_near(self, place: int, profile: TimingProfile, other: TimingProfile) -> float:
        subject = self.subjects[place]
        if subject.steps.count < LARGE_STEPS:
            return self._timed[place](other).cycles
        known = self._timed[place](profile)
        if known.path is None:
            return known.cycles
        return max(1.0, known.cycles + _length(subject, known.path, other) - known.length)

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

    def _time(self, subject: LoadedSubject, profile: TimingProfile) -> _Timed:
        is_compiled = True if self.is_costly and is_available() else None
        timeline = subject.time(profile, compile=is_compiled)
        if subject.steps.count < LARGE_STEPS or timeline.is_stuck:
            return _Timed(_cycles(timeline), None)
        path = subject.costs.count_kinds([link.step for link in critical_path(timeline)])
        return _Timed(_cycles(timeline), path, _length(subject, path, profile))


def _cycles(timeline: Timeline) -> float:
    return MOST_CYCLES if timeline.is_stuck else float(max(1, TimedResult(timeline).cycles))


def _length(subject: LoadedSubject, path: Column, profile: TimingProfile) -> float:
    """The cycles of a path with some figures, and of the call before it."""
    return float(path @ subject.costs.kind_cycles(profile)) + (profile.get("SEQ", "call") or 0)

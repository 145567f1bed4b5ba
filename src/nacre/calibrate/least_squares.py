"""Figures fitted to times from one start: bounded least squares of logarithms.

Figures are integers. The fit moves on a ladder of them, a few per cent apart, and takes times
between two rungs as the straight line: slopes are what a step of a rung changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nacre.calibrate.free_figures import FreeFigure
from nacre.calibrate.timed_rows import Floats, TimedRows, Values

SCALE = 0.1  # logarithms further off than this count less and less
_MOST_STEPS = 60  # of one descent
_MOST_TIMINGS = 8  # of one descent on critical paths
_STEPS_ON_PATHS = 20  # between two timings
_REACH = 24  # rungs, a factor of two, that figures go on one set of paths
_LEAST_GAIN = 1e-2  # a share of the loss that is worth another timing
_INSIDE = 1e-3  # how far from an end of its ladder a descent starts

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Problem:
    """Rows whose measured times are to be met; some may be left out."""

    rows: TimedRows
    log_measured: Floats
    used: Mask

    @property
    def free(self) -> Sequence[FreeFigure]:
        """The figures that are fitted."""
        return self.rows.free

    def residuals(self, values: Values) -> Floats:
        """Logarithms of modelled over measured times, of the rows that count."""
        off: Floats = (np.log(self.rows.times(values)) - self.log_measured)[self.used]
        return off

    def residuals_near(self, values: Values, near: Values) -> Floats:
        """The same with values near to others, where slopes may take the place of a timing."""
        off: Floats = (np.log(self.rows.times_near(values, near)) - self.log_measured)[self.used]
        return off

    @property
    def movable(self) -> tuple[int, ...]:
        """Figures that slopes lead to the best value of: all but sizes, if there are others."""
        others = tuple(p for p, figure in enumerate(self.free) if not figure.is_size)
        return others or tuple(range(len(self.free)))

    def loss(self, values: Values) -> float:
        """What is made small: squares near zero, further off no more than distances."""
        return robust_loss(self.residuals(values))

    def scale_free_loss(self, values: Values) -> float:
        """The same, but for a factor by which all times are off."""
        off = self.residuals(values)
        return robust_loss(off - np.median(off))


def robust_loss(off: Floats) -> float:
    """The sum of `soft_l1` losses."""
    return float(np.sum(2 * SCALE**2 * (np.sqrt(1 + (off / SCALE) ** 2) - 1)))


def descend(problem: Problem, start: Values, most_steps: int = _MOST_STEPS) -> Values:
    """Least squares on the ladders, from one start; integers that are no worse than it."""
    if problem.rows.is_costly:
        return _descend_by_paths(problem, start)
    line = _Interpolation(problem, start)
    highs = np.array([len(f.ladder) - 1.0 for f in line.ladders])
    return min(
        _solve(line, start, np.zeros_like(highs), highs, most_steps), start, key=problem.loss
    )


def _descend_by_paths(problem: Problem, start: Values) -> Values:
    """The same with few timings: each is followed by a whole descent on the paths that it found.

    Paths change on the way, so that figures go no further than some rungs before the next timing,
    and half as far where that was too far.
    """
    best, loss, reach = start, problem.loss(start), float(_REACH)
    for _ in range(_MOST_TIMINGS):
        line = _Interpolation(problem, best, best)
        at = line.ladder_positions(best)
        highs = np.array([len(f.ladder) - 1.0 for f in line.ladders])
        lows, highs = np.maximum(0.0, at - reach), np.minimum(highs, at + reach)
        found = _solve(line, best, lows, highs, _STEPS_ON_PATHS)
        new = problem.loss(found)
        gain = loss - new
        if gain > 0:
            best, loss = found, new
        else:
            reach /= 3
        if reach < 1 or 0 <= gain < _LEAST_GAIN * loss:
            break
    return best


def _solve(line: _Interpolation, start: Values, lows: Floats, highs: Floats, most: int) -> Values:
    from scipy.optimize import least_squares

    found = least_squares(
        line.residuals,
        np.clip(line.ladder_positions(start), lows + _INSIDE, highs - _INSIDE),
        line.slopes,
        bounds=(lows, highs),
        loss="soft_l1",
        f_scale=SCALE,
        x_scale=10.0,
        xtol=1e-3,
        ftol=1e-6,
        gtol=1e-8,
        max_nfev=most,
    )
    return line.round_to_ladder(found.x)


class _Interpolation:
    """Residuals between the rungs of the ladders of figures that move."""

    def __init__(self, problem: Problem, start: Values, timed: Values | None = None) -> None:
        self._problem, self._start = problem, start
        self._timed = timed  # by whose paths others are timed; None: each by its own
        self.ladders = [problem.free[place] for place in problem.movable]
        self._last: tuple[Floats, tuple[Floats, Floats, Floats]] | None = None

    def residuals(self, places: Floats) -> Floats:
        base, slopes, shares = self._cached_slopes(places)
        return base + slopes @ shares

    def slopes(self, places: Floats) -> Floats:
        return self._cached_slopes(places)[1]

    def ladder_positions(self, values: Values) -> Floats:
        """Where values lie on the ladders."""
        moved = [values[place] for place in self._problem.movable]
        return np.array([f.ladder_position(v) for f, v in zip(self.ladders, moved, strict=True)])

    def round_to_ladder(self, places: Floats) -> Values:
        return self._values([round(f.value(x)) for f, x in zip(self.ladders, places, strict=True)])

    def _values(self, moved: Sequence[int]) -> Values:
        values = list(self._start)
        for place, value in zip(self._problem.movable, moved, strict=True):
            values[place] = value
        return tuple(values)

    def _cached_slopes(self, places: Floats) -> tuple[Floats, Floats, Floats]:
        if self._last is None or not np.array_equal(self._last[0], places):  # asked for twice
            self._last = (places.copy(), self._slopes_around(places))
        return self._last[1]

    def _slopes_around(self, places: Floats) -> tuple[Floats, Floats, Floats]:
        rungs = [min(int(x), len(f.ladder) - 2) for f, x in zip(self.ladders, places, strict=True)]
        moved = [f.ladder[rung] for f, rung in zip(self.ladders, rungs, strict=True)]
        here = self._values(moved)
        timed = here if self._timed is None else self._timed
        base = self._problem.residuals_near(timed, here)
        columns = []
        for place, figure in enumerate(self.ladders):
            above = [*moved]
            above[place] = figure.ladder[rungs[place] + 1]
            columns.append(self._problem.residuals_near(timed, self._values(above)) - base)
        return base, np.stack(columns, axis=1), np.asarray(places) - rungs

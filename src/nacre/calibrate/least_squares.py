"""Figures fitted to times: bounded least squares of logarithms, then the best integers nearby.

Figures are integers. The fit moves on a ladder of them, a few per cent apart, and takes times
between two rungs as the straight line: slopes are what a step of a rung changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nacre.base.stages import stage
from nacre.calibrate.free_figures import FreeFigure
from nacre.calibrate.timed_rows import Floats, TimedRows, Values

SCALE = 0.1  # logarithms further off than this count less and less
_MOST_STEPS = 60  # of one descent
_SCAN = 16  # places of a range that are tried, one figure at a time
_GAIN = 1e-4  # what a better value must win, as a share
_INSIDE = 1e-3  # how far from an end of its ladder a descent starts
_MOST_ROUNDS = 6  # of polishing

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

    def loss(self, values: Values) -> float:
        """What is made small: squares near zero, further off no more than distances."""
        return robust_loss(self.residuals(values))


def robust_loss(off: Floats) -> float:
    """The sum of `soft_l1` losses."""
    return float(np.sum(2 * SCALE**2 * (np.sqrt(1 + (off / SCALE) ** 2) - 1)))


def fit_values(problem: Problem, starts: Sequence[Values]) -> Values:
    """The best integers that are found from any of the starts."""
    found: list[Values] = []
    with stage("fitting", "starts", lambda: (len(found), len(starts))):
        for start in starts:
            found.append(descend(problem, start))
    best = min(found, key=problem.loss)
    elsewhere = _scan(problem, best)
    return _polish(problem, best if elsewhere == best else descend(problem, elsewhere))


def starting_values(free: Sequence[FreeFigure], count: int, seed: int) -> list[Values]:
    """What the device has, then the middle of ranges, then values drawn from them.

    Ranges are taken by their logarithms.
    """
    rng = np.random.default_rng(seed)
    starts = [tuple(f.first for f in free), tuple(_draw(f, 0.5) for f in free)]
    drawn = [tuple(_draw(f, float(rng.random())) for f in free) for _ in range(2, count)]
    return [*starts, *drawn][:count]


def _draw(figure: FreeFigure, share: float) -> int:
    low, high = (figure.place(value) for value in figure.start_range)
    return round(figure.value(low + share * (high - low)))


def descend(problem: Problem, start: Values) -> Values:
    """Least squares on the ladders, from one start; integers that are no worse than it."""
    from scipy.optimize import least_squares

    ladders = problem.free
    highs = np.array([len(f.ladder) - 1.0 for f in ladders])
    first = [f.place(v) for f, v in zip(ladders, start, strict=True)]
    line = _Interpolation(problem)
    found = least_squares(
        line.residuals,
        np.clip(first, _INSIDE, highs - _INSIDE),
        line.slopes,
        bounds=(0.0, highs),
        loss="soft_l1",
        f_scale=SCALE,
        x_scale=10.0,
        xtol=1e-3,
        ftol=1e-6,
        gtol=1e-8,
        max_nfev=_MOST_STEPS,
    )
    rounded = tuple(round(f.value(x)) for f, x in zip(ladders, found.x, strict=True))
    return min(rounded, start, key=problem.loss)


class _Interpolation:
    """Residuals between the rungs of the ladders."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def residuals(self, places: Floats) -> Floats:
        base, slopes, shares = self._around(places)
        return base + slopes @ shares

    def slopes(self, places: Floats) -> Floats:
        return self._around(places)[1]

    def _around(self, places: Floats) -> tuple[Floats, Floats, Floats]:
        ladders = self._problem.free
        rungs = [min(int(x), len(f.ladder) - 2) for f, x in zip(ladders, places, strict=True)]
        values = [f.ladder[r] for f, r in zip(ladders, rungs, strict=True)]
        base = self._problem.residuals(tuple(values))
        columns = []
        for place, figure in enumerate(ladders):
            above = figure.ladder[rungs[place] + 1]
            moved = (*values[:place], above, *values[place + 1 :])
            columns.append(self._problem.residuals(moved) - base)
        return base, np.stack(columns, axis=1), np.asarray(places) - rungs


def _scan(problem: Problem, values: Values) -> Values:
    """Whether another place of one range is better: sizes of arrays have more than one valley."""
    best, loss = values, problem.loss(values)
    for place, figure in enumerate(problem.free):
        for value in _scanned_values(figure):
            tried = (*best[:place], value, *best[place + 1 :])
            found = problem.loss(tried)
            if found < loss * (1 - _GAIN):
                best, loss = tried, found
    return best


def _scanned_values(figure: FreeFigure) -> list[int]:
    """Values all over the range, and powers of two, which sizes in hardware often are."""
    low, high = figure.start_range
    spaced = {_draw(figure, place / (_SCAN - 1)) for place in range(_SCAN)}
    powers = {1 << bit for bit in range(high.bit_length()) if low <= 1 << bit <= high}
    return sorted(spaced | powers)


def _polish(problem: Problem, values: Values) -> Values:
    """The best integers nearby: steps that halve, one figure at a time."""
    best, loss = values, problem.loss(values)
    for _ in range(_MOST_ROUNDS):
        before = loss
        for place, figure in enumerate(problem.free):
            step = max(1, best[place] // 16)
            while step >= 1:
                moved = [
                    (*best[:place], best[place] + sign * step, *best[place + 1 :])
                    for sign in (1, -1)
                    if figure.low <= best[place] + sign * step <= figure.high
                ]
                found = min(((problem.loss(m), m) for m in moved), default=(loss, best))
                if found[0] < loss * (1 - _GAIN / 10):
                    loss, best = found
                else:
                    step //= 2
        if loss >= before * (1 - _GAIN):
            break
    return best

"""What the rows can tell of figures: standard errors, figures without effect, figures alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nacre.calibrate.free_figures import FreeFigure
from nacre.calibrate.least_squares import SCALE, Problem
from nacre.calibrate.timed_rows import Floats, Values

_RUNGS = 2  # to either side, between which slopes are taken
_ALIKE = 0.1  # the least singular value of unit columns of figures that differ
_UNSURE = 0.25  # a standard error, as a share of the figure, that makes likeness worth telling
_MEMBER = 0.2  # the part of a figure in a combination that counts
_SAME = 1e-3  # below which figures are alike, however little noise there is
_LEAST_SINGULAR = 1e-9


@dataclass(frozen=True)
class Combination:
    """Figures that the rows cannot tell apart, with the direction in which each goes."""

    members: tuple[tuple[str, float], ...]

    def __str__(self) -> str:
        """`NMU.latency up with CSTL.latency down`."""
        first = self.members[0][1]
        signs = [("up" if part * first > 0 else "down") for _, part in self.members]
        return " with ".join(f"{n} {s}" for (n, _), s in zip(self.members, signs, strict=True))


@dataclass(frozen=True)
class Identifiability:
    """Standard errors by figure, in its units; None where no time depends on it."""

    errors: tuple[float | None, ...]
    alike: tuple[Combination, ...]


def identify(problem: Problem, values: Values) -> Identifiability:
    """What the slopes of the times at the fitted values say."""
    free = problem.free
    slopes, spacings = _slopes(problem, values)
    off = problem.residuals(values)
    weights = 1 / np.sqrt(1 + (off / SCALE) ** 2)
    weighted = slopes * np.sqrt(weights)[:, None]
    norms = np.linalg.norm(weighted, axis=0)
    seen = [place for place in range(len(free)) if norms[place] > 0]
    if not seen:
        return Identifiability((None,) * len(free), ())
    _, singular, directions = np.linalg.svd(weighted[:, seen] / norms[seen], full_matrices=False)
    spare = max(1, len(off) - len(seen))
    deviation = float(np.sqrt(np.sum(weights * off**2) / spare))
    parts = directions / np.maximum(singular, _LEAST_SINGULAR)[:, None]
    in_places = deviation * np.sqrt(np.sum(parts**2, axis=0)) / norms[seen]
    errors: list[float | None] = [None] * len(free)
    for place, error in zip(seen, in_places, strict=True):
        errors[place] = float(error) * spacings[place]
    unsure = {p for p in seen if (errors[p] or 0.0) > _UNSURE * max(1, values[p])}
    alike = [
        _combination([free[p] for p in seen], direction)
        for value, direction in zip(singular, directions, strict=True)
        if value < _SAME or (value < _ALIKE and unsure & _members(seen, direction))
    ]
    return Identifiability(tuple(errors), tuple(alike))


def _members(seen: list[int], direction: Floats) -> set[int]:
    return {p for p, part in zip(seen, direction, strict=True) if abs(part) > _MEMBER}


def _combination(figures: list[FreeFigure], direction: Floats) -> Combination:
    members = [
        (figure.name, float(part))
        for figure, part in zip(figures, direction, strict=True)
        if abs(part) > _MEMBER
    ]
    return Combination(tuple(sorted(members, key=lambda member: -abs(member[1]))))


def _slopes(problem: Problem, values: Values) -> tuple[Floats, list[float]]:
    """By figure: how logarithms of times change from rung to rung, and what a rung is in units."""
    columns, spacings = [], []
    for place, figure in enumerate(problem.free):
        at = figure.ladder_position(values[place])
        low = int(figure.value(max(0.0, at - _RUNGS)))
        high = round(figure.value(min(len(figure.ladder) - 1.0, at + _RUNGS)))
        distance = figure.ladder_position(high) - figure.ladder_position(low)
        moved = [(*values[:place], v, *values[place + 1 :]) for v in (low, high)]
        below, above = (problem.residuals_near(values, other) for other in moved)
        columns.append((above - below) / distance)
        spacings.append((high - low) / distance)
    return np.stack(columns, axis=1), spacings

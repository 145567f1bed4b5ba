"""Times of rows that nothing was fitted to: whole groups are left out, one part after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nacre.base.stages import stage
from nacre.calibrate.least_squares import Problem
from nacre.calibrate.search import refit_values
from nacre.calibrate.timed_rows import Floats, Values

FOLDS = 5


@dataclass(frozen=True)
class HeldOutTimes:
    """Modelled times of every row by a fit that did not see its group."""

    times: Floats
    folds: tuple[int, ...]


def cross_validate(problem: Problem, groups: Sequence[str], found: Values) -> HeldOutTimes | None:
    """Fits without each part of the groups, from the values found; None for a single group."""
    names = sorted(set(groups))
    count = min(FOLDS, len(names))
    if count < 2:
        return None
    fold_of = {name: place % count for place, name in enumerate(names)}
    folds = np.array([fold_of[group] for group in groups])
    times = np.empty(len(groups), np.float64)
    done = 0
    with stage("cross-validating", "parts", lambda: (done, count)):
        for fold in range(count):
            inside = folds == fold
            values = refit_values(replace(problem, used=~inside), found)
            times[inside] = problem.rows.times(values)[inside]
            done += 1
    return HeldOutTimes(times, tuple(folds.tolist()))

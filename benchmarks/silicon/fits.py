"""Predictions held to measurements: figures fitted to some groups of rows, errors on the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
# What is fitted on one part, as a function of the model's value: for a training set, a predictor.
Fit = Callable[[Floats, Floats], Callable[[Floats], Floats]]
FOLDS = 5


@dataclass(frozen=True)
class Rows:
    """What a model says of rows, what was measured, and which rows belong together."""

    modelled: Floats
    measured: Floats
    groups: tuple[str, ...]


@dataclass(frozen=True)
class Errors:
    """Errors on rows that nothing was fitted to, as shares of what was measured."""

    count: int
    median: float
    most: float  # of nine in ten
    rank: float  # correlation of ranks
    is_fitted: bool = False  # to these very rows

    def __str__(self) -> str:
        star = " *" if self.is_fitted else ""
        return f"{self.count:6}{self.median:9.1%}{self.most:9.1%}{self.rank:8.2f}{star}"


def fit_scale(modelled: Floats, measured: Floats) -> Callable[[Floats], Floats]:
    """One factor, in the middle of the ratios."""
    factor = float(np.exp(np.median(np.log(measured / modelled))))
    return lambda values: factor * values


def fit_call_cost(modelled: Floats, measured: Floats) -> Callable[[Floats], Floats]:
    """A factor and a cost that every call has, the least squares of logarithms."""
    from scipy.optimize import least_squares

    start = np.log([np.median(measured / modelled), max(measured.min() / 2, 1e-9)])
    found = least_squares(
        lambda p: np.log(np.exp(p[0]) * modelled + np.exp(p[1])) - np.log(measured),
        start,
        loss="soft_l1",
    )
    factor, cost = np.exp(found.x)
    return lambda values: factor * values + cost


def cross_validate(rows: Rows, fit: Fit) -> Errors:
    """Errors on whole groups that were left out, of which there are five parts."""
    names = sorted(set(rows.groups))
    if len(names) == 1:
        predictor = fit(rows.modelled, rows.measured)
        errors = errors_of(predictor(rows.modelled), rows.measured)
        return replace(errors, is_fitted=True)
    fold_of = {name: place % min(FOLDS, len(names)) for place, name in enumerate(names)}
    folds = np.array([fold_of[group] for group in rows.groups])
    predicted = np.empty_like(rows.measured)
    for fold in sorted(set(folds.tolist())):
        inside = folds == fold
        predictor = fit(rows.modelled[~inside], rows.measured[~inside])
        predicted[inside] = predictor(rows.modelled[inside])
    return errors_of(predicted, rows.measured)


def errors_of(predicted: Floats, measured: Floats) -> Errors:
    """How far predictions are off."""
    off = np.abs(predicted / measured - 1)
    ranks = [_ranks(predicted), _ranks(measured)]
    is_open = min(np.ptp(one) for one in ranks) > 0  # all alike have no order
    rank = float(np.asarray(np.corrcoef(ranks))[0, 1]) if is_open else 0.0
    return Errors(len(off), float(np.median(off)), float(np.quantile(off, 0.9)), rank)


def _ranks(values: Sequence[float] | Floats) -> Floats:
    """Places in order, equal values sharing theirs."""
    order = np.unique(np.asarray(values), return_inverse=True)[1]
    counts = np.bincount(order)
    middles = np.cumsum(counts) - (counts - 1) / 2
    return np.asarray(middles[order], np.float64)

"""Predictions held to measurements: figures fitted to some groups of rows, errors on the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
# What is fitted on one part, as a function of the model's value: for a training set, a predictor.
Predictor = Callable[[Floats], Floats]
Fit = Callable[[Floats, Floats], Predictor]
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


def fit_scale(modelled: Floats, measured: Floats) -> Predictor:
    """One factor, in the middle of the ratios."""
    factor = float(np.exp(np.median(np.log(measured / modelled))))
    return lambda values: factor * values


def fit_call_cost(modelled: Floats, measured: Floats) -> Predictor:
    """A factor and a cost that every call has, the least squares of logarithms."""
    predict = fit_parts(_with_ones(modelled), measured)
    return lambda values: predict(_with_ones(values))


def _with_ones(modelled: Floats) -> Floats:
    return np.stack([modelled, np.ones_like(modelled)], axis=1)


def fit_parts(parts: Floats, measured: Floats, scale: float = 1.0) -> Predictor:
    """A positive factor for each column; logarithms further off than the scale count less."""
    factors = part_factors(parts, measured, scale)
    return lambda values: values @ factors


def part_factors(parts: Floats, measured: Floats, scale: float = 1.0) -> Floats:
    """The factors of columns whose sum is nearest to what was measured, by logarithms."""
    from scipy.optimize import least_squares

    most = parts.max(axis=0)
    sizes = np.where(most > 0, most, 1.0)
    start = np.full(parts.shape[1], np.log(np.median(measured) / parts.shape[1]))
    found = least_squares(
        lambda logs: np.log(parts / sizes @ np.exp(logs)) - np.log(measured),
        start,
        loss="soft_l1",
        f_scale=scale,
    )
    return np.where(most > 0, np.exp(found.x) / sizes, 0.0)  # nothing is known of what is nowhere


def cross_validate(rows: Rows, fit: Fit) -> Errors:
    """Errors on whole groups that were left out, of which there are five parts."""
    errors = errors_of(predict_left_out(rows, fit), rows.measured)
    return replace(errors, is_fitted=len(set(rows.groups)) == 1)


def predict_left_out(rows: Rows, fit: Fit) -> Floats:
    """What fits without its group say of each row; of a single group, what its own fit says."""
    folds = folds_of(rows.groups)
    if not folds.any():
        return fit(rows.modelled, rows.measured)(rows.modelled)
    predicted = np.empty_like(rows.measured)
    for fold in sorted(set(folds.tolist())):
        inside = folds == fold
        predictor = fit(rows.modelled[~inside], rows.measured[~inside])
        predicted[inside] = predictor(rows.modelled[inside])
    return predicted


def folds_of(groups: Sequence[str]) -> npt.NDArray[np.int64]:
    """The part of each row, of which there are five at most; a group is in one."""
    names = sorted(set(groups))
    fold_of = {name: place % min(FOLDS, len(names)) for place, name in enumerate(names)}
    return np.array([fold_of[group] for group in groups], np.int64)


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

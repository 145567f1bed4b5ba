"""How far modelled times are from measured ones: errors, ranks, bands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nacre.calibrate.timed_rows import Floats
from nacre.nem.model.calibration import ErrorBand

COVERED = 0.8  # the share of true times that a band is to hold
_LEAST_OTHERS = 10  # rows that a band is found from, for others to be held against it


def error_band(modelled: Floats, measured: Floats, folds: Sequence[int] | None) -> ErrorBand:
    """Errors of rows, and their band; with folds, the share that bands without them hold."""
    off = np.abs(modelled / measured - 1)
    ratios = np.log(measured / modelled)
    low, high = _band(ratios)
    return ErrorBand(
        len(off),
        float(np.median(off)),
        float(np.quantile(off, 0.9)),
        rank_correlation(modelled, measured),
        float(np.exp(low)),
        float(np.exp(high)),
        None if folds is None else _share_inside(ratios, np.asarray(folds)),
    )


def _band(ratios: Floats) -> tuple[float, float]:
    """The middle 80 % of ratios, wider where rows are few."""
    tail = (1 - COVERED) / 2
    low, high = np.quantile(ratios, [tail, 1 - tail], method="weibull")
    return float(low), float(high)


def _share_inside(ratios: Floats, folds: Floats) -> float | None:
    """The share of rows that lie in the band of the other folds."""
    inside, count = 0, 0
    for fold in np.unique(folds):
        others, own = ratios[folds != fold], ratios[folds == fold]
        if len(others) < _LEAST_OTHERS:
            continue
        low, high = _band(others)
        inside += int(np.sum((own >= low) & (own <= high)))
        count += len(own)
    return inside / count if count else None


def rank_correlation(a: Floats, b: Floats) -> float:
    """Spearman's: 1 where the order is the same; 0 where one of them has none."""
    ranks = [_ranks(a), _ranks(b)]
    if min(np.ptp(one) for one in ranks) == 0:
        return 0.0
    a, b = (one - one.mean() for one in ranks)
    return float(np.clip(a @ b / np.sqrt((a @ a) * (b @ b)), -1, 1))


def _ranks(values: Floats) -> Floats:
    """Places in order, equal values sharing theirs."""
    order = np.unique(values, return_inverse=True)[1]
    counts = np.bincount(order)
    middles = np.cumsum(counts) - (counts - 1) / 2
    return np.asarray(middles[order], np.float64)

"""How far modelled times are from measured ones: errors, ranks, bands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nacre.calibrate.timed_rows import Floats
from nacre.nem.model.calibration import ErrorBand

Names = npt.NDArray[np.object_]
COVERED = 0.8  # the share of true times that a band is to hold
_LEAST_OTHERS = 10  # rows that a band is found from, for others to be held against it


def error_band(
    modelled: Floats, measured: Floats, groups: Sequence[str], folds: Sequence[int] | None
) -> ErrorBand:
    """Errors of rows, and their band; with folds, the share that bands without them hold."""
    off = np.abs(modelled / measured - 1)
    ratios, names = np.log(measured / modelled), np.array(groups, np.object_)
    low, high = _band(ratios, names)
    return ErrorBand(
        len(off),
        float(np.median(off)),
        float(np.quantile(off, 0.9)),
        rank_correlation(modelled, measured),
        float(np.exp(low)),
        float(np.exp(high)),
        None if folds is None else _share_inside(ratios, names, np.asarray(folds)),
    )


def _band(ratios: Floats, groups: Names) -> tuple[float, float]:
    """The middle 80 % of ratios, wider where rows or their groups are few."""
    tail = (1 - COVERED) / 2
    low, middle, high = np.quantile(ratios, [tail, 0.5, 1 - tail], method="weibull")
    widening = _widening_factor(len(set(groups.tolist())))
    return float(middle + widening * (low - middle)), float(middle + widening * (high - middle))


def _widening_factor(groups: int) -> float:
    """How much wider a band of a few groups has to be to hold as much of the next one.

    Rows of a group are off together, so that groups are what was drawn: Student's quantile beside
    the normal one, and the error of the middle.
    """
    from scipy.stats import norm, t

    share = (1 + COVERED) / 2
    return float(t.ppf(share, max(1, groups - 1)) / norm.ppf(share) * np.sqrt(1 + 1 / groups))


def _share_inside(ratios: Floats, groups: Names, folds: Floats) -> float | None:
    """The share of rows that lie in the band of the other folds."""
    inside, count = 0, 0
    for fold in np.unique(folds):
        others, own = ratios[folds != fold], ratios[folds == fold]
        if len(others) < _LEAST_OTHERS:
            continue
        low, high = _band(others, groups[folds != fold])
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

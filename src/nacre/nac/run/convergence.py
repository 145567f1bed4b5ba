"""Merging the branches of `<CONVERGENCE>`.

A branch takes part when the cosine between it and the mean of the others reaches the threshold;
those that do are averaged. Where none does, the branch nearest to the mean of all is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nacre.core.unsupported import Unsupported
from nacre.core.values import Array
from nacre.nac.spec.instructions import MOST_COHERENCE


def merge_branches(branches: Sequence[Any], percent: int) -> Array:
    """One tensor of several; Unsupported where they do not fit together."""
    require_alike(branches)
    first: Array = branches[0]
    if len(branches) == 1:
        return first
    flat = np.stack([branch.reshape(-1) for branch in branches]).astype(np.float64)
    with np.errstate(all="ignore"):
        others = (flat.sum(0) - flat) / (len(flat) - 1)
        lengths = np.linalg.norm(flat, axis=1) * np.linalg.norm(others, axis=1)
        cosines = (flat * others).sum(1) / np.where(lengths == 0, 1, lengths)
        coherent = flat[cosines >= percent / MOST_COHERENCE]
        if len(coherent):
            merged = coherent.mean(0)
        else:
            merged = flat[np.argmin(np.linalg.norm(flat - flat.mean(0), axis=1))]
        result: Array = merged.reshape(first.shape).astype(first.dtype)
    return result


def require_alike(branches: Sequence[Any]) -> None:
    """Unsupported where branches do not give tensors of one type."""
    if any(not isinstance(branch, np.ndarray) for branch in branches):
        raise Unsupported("a branch does not give one tensor")
    if len({(branch.shape, branch.dtype) for branch in branches}) > 1:
        raise Unsupported("the branches give tensors of different types")

"""Elements picked by index: slices where the indices are known, else rows of the first axis."""

from __future__ import annotations

from math import prod

import numpy as np

from nacre.compile.legal.along import FEW, runs_of, taken
from nacre.compile.legal.rounds import Forms
from nacre.compile.legal.windows import reshaped
from nacre.core.inference.rewriting import Site


def known_indices(site: Site) -> int | None:
    """Indices that are known: slices, where few will do."""
    x, indices = site.operands
    known = site.constant(indices)
    axis, shape = _axis(site), site.type(x).shape
    if known is None or site.constant(x) is not None or known.size == 0:
        return None
    places = np.ravel(np.where(known < 0, known + shape[axis], known)).astype(np.int64)
    if places.min() < 0 or places.max() >= shape[axis] or len(runs_of(places)) > FEW:
        return None
    return reshaped(site, taken(site, x, axis, places), site.op.type.shape)


def along_first_axis(site: Site) -> int | None:
    """Along another axis: that axis in front, and the picked ones back in its place."""
    x, indices = site.operands
    axis, shape = _axis(site), site.type(x).shape
    if axis == 0:
        if site.attributes.get("axis", 0) == 0:
            return None
        return site.add("GatherAxis", x, indices, axis=0)
    before, behind = prod(shape[:axis]), prod(shape[axis + 1 :])
    split = reshaped(site, x, (before, shape[axis], behind))
    front = site.add("Transpose", split, permutation=(1, 0, 2))
    count = prod(site.type(indices).shape)
    rows = reshaped(site, front, (shape[axis], before * behind))
    made = site.add("GatherAxis", rows, reshaped(site, indices, (count,)), axis=0)
    back = site.add(
        "Transpose", reshaped(site, made, (count, before, behind)), permutation=(1, 0, 2)
    )
    return reshaped(site, back, site.op.type.shape)


def _axis(site: Site) -> int:
    axis = site.attributes.get("axis", 0)
    assert isinstance(axis, int)
    return axis % site.type(site.operands[0]).rank


GATHER_FORMS: Forms = {
    "Gather": [known_indices],
    "GatherAxis": [known_indices, along_first_axis],
}

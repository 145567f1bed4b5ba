"""Along one axis: products with constant matrices, and any fixed choice of places."""

from __future__ import annotations

from itertools import pairwise
from math import prod

import numpy as np

from nacre.compile.legalise.forms.windows.windows import slice_axis
from nacre.core.rewrite.site import RewriteSite
from nacre.core.values import Array

FEW = 16  # parts that are copied one by one rather than by a product
RUN = 32  # bytes that a unit moves at a time


def product_along(site: RewriteSite, value: int, axis: int, matrix: Array) -> int:
    """A tensor with a matrix [after, before] applied to one of its axes.

    `Linear` on the last axis, else `MatMul` from the left with the axis in front.
    """
    shape = site.type(value).shape
    dtype = site.type(value).dtype
    before, behind = prod(shape[:axis]), prod(shape[axis + 1 :])
    count, size = matrix.shape
    after = (*shape[:axis], count, *shape[axis + 1 :])
    weights = site.literal(np.ascontiguousarray(matrix), dtype)
    if behind == 1:
        product = site.add("Linear", site.reshape(value, (before, size)), weights)
        return site.reshape(product, after)
    split = site.reshape(value, (before, size, behind))
    if before == 1:
        product = site.add("MatMul", weights, site.reshape(split, (size, behind)))
        return site.reshape(product, after)
    front = site.add("Transpose", split, permutation=(1, 0, 2))
    product = site.add("MatMul", weights, site.reshape(front, (size, before * behind)))
    product = site.reshape(product, (count, before, behind))
    return site.reshape(site.add("Transpose", product, permutation=(1, 0, 2)), after)


def take_along(site: RewriteSite, value: int, axis: int, positions: Array) -> int | None:
    """Certain places along an axis, in any order: slices where few will do, else rows by number.

    Parts that run forward stay slices, such as what lies between two borders that do not. A matrix
    would choose as well, but costs the square of the axis, and makes NaN of all beside an infinity.
    """
    if has_few_runs(positions):
        return take_slices(site, value, axis, positions)
    if site.type(value).element.is_integer:
        return None
    parts = np.split(positions, _part_starts(positions))
    if not 1 < len(parts) <= FEW:
        return _gather_rows(site, value, axis, positions)
    taken = [take_along(site, value, axis, part) for part in parts]
    return site.add("Concat", *(m for m in taken if m is not None), axis=axis)


def _part_starts(positions: Array) -> Array:
    """Where a new part begins: runs forward with a step of 1, and all else between them."""
    first, end, step = runs_of(positions).T
    ends = np.cumsum(-((first - end) // step))
    is_long = end - first > 1
    changes: Array = ends[:-1][is_long[1:] | is_long[:-1]]
    return changes


def _gather_rows(site: RewriteSite, value: int, axis: int, positions: Array) -> int:
    """Places along an axis as rows of a table; short rows leave it to a gather along that axis."""
    shape = site.type(value).shape
    before, size, behind = prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])
    if before > 1 and behind * site.type(value).element.bits < 8 * RUN:
        return site.add("GatherAxis", value, site.literal(positions, "i32"), axis=axis)
    rows = site.reshape(value, (before * size, behind))
    numbers = (np.arange(before)[:, None] * size + positions).ravel()
    picked = site.add("GatherAxis", rows, site.literal(numbers, "i32"), axis=0)
    return site.reshape(picked, (*shape[:axis], positions.size, *shape[axis + 1 :]))


def take_slices(site: RewriteSite, value: int, axis: int, positions: Array) -> int:
    """Certain places along an axis, as slices after each other."""
    runs = runs_of(positions).tolist()
    parts = [slice_axis(site, value, axis, first, end, step) for first, end, step in runs]
    return parts[0] if len(parts) == 1 else site.add("Concat", *parts, axis=axis)


def has_few_runs(positions: Array) -> bool:
    """Whether few slices will do; a run takes up two changes of the step at most."""
    return (
        bool(np.count_nonzero(np.diff(positions, 2)) <= 2 * FEW) and len(runs_of(positions)) <= FEW
    )


def runs_of(positions: Array) -> Array:
    """Places as slices that run forward, a row each: first, end, step.

    Steps that are alike are one group, so that the work goes by groups and not by places.
    """
    steps = np.diff(positions)
    borders = [0, *(np.flatnonzero(np.diff(steps)) + 1).tolist(), steps.size]
    runs: list[Array] = []
    at = 0  # the first place that is in no run yet
    for start, end in pairwise(borders):
        if at >= end:  # the only step of the group leads from one run to the next
            continue
        step = int(steps[start])
        if step >= 1:
            runs.append(np.array([[positions[at], positions[end] + 1, step]]))
            at = end + 1
        else:
            runs.append(_single_runs(positions[at:end]))
            at = end
    return np.concatenate([np.zeros((0, 3), np.int64), *runs, _single_runs(positions[at:])])


def _single_runs(positions: Array) -> Array:
    """A run for each place."""
    return np.stack([positions, positions + 1, np.ones_like(positions)], axis=1)

"""Along one axis: products with constant matrices, and any fixed choice of places."""

from __future__ import annotations

from math import prod

import numpy as np

from nacre.compile.legal.windows import reshaped, sliced
from nacre.core.inference.rewriting import Site
from nacre.core.values import Array

FEW = 16  # parts that are copied one by one rather than by a product
RUN = 32  # bytes that a unit moves at a time


def product_along(site: Site, value: int, axis: int, matrix: Array) -> int:
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
        made = site.add("Linear", reshaped(site, value, (before, size)), weights)
        return reshaped(site, made, after)
    split = reshaped(site, value, (before, size, behind))
    if before == 1:
        made = site.add("MatMul", weights, reshaped(site, split, (size, behind)))
        return reshaped(site, made, after)
    front = site.add("Transpose", split, permutation=(1, 0, 2))
    made = site.add("MatMul", weights, reshaped(site, front, (size, before * behind)))
    made = reshaped(site, made, (count, before, behind))
    return reshaped(site, site.add("Transpose", made, permutation=(1, 0, 2)), after)


def chosen_along(site: Site, value: int, axis: int, places: Array) -> int | None:
    """Certain places along an axis, in any order: slices where few will do, else rows by number.

    Parts that run forward stay slices, such as what lies between two borders that do not. A matrix
    would choose as well, but costs the square of the axis, and makes NaN of all beside an infinity.
    """
    if len(runs_of(places)) <= FEW:
        return taken(site, value, axis, places)
    if site.type(value).element.is_integer:
        return None
    parts = np.split(places, _turns(places))
    if not 1 < len(parts) <= FEW:
        return _picked(site, value, axis, places)
    made = [chosen_along(site, value, axis, part) for part in parts]
    return site.add("Concat", *(m for m in made if m is not None), axis=axis)


def _turns(places: Array) -> Array:
    """Where a new part begins: runs forward with a step of 1, and all else between them."""
    runs = runs_of(places)
    ends = np.cumsum([len(range(*run)) for run in runs])
    is_long = np.array([end - first > 1 for first, end, _ in runs])
    changes: Array = ends[:-1][is_long[1:] | is_long[:-1]]
    return changes


def _picked(site: Site, value: int, axis: int, places: Array) -> int:
    """Places along an axis as rows of a table; short rows leave it to a gather along that axis."""
    shape = site.type(value).shape
    before, size, behind = prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])
    if before > 1 and behind * site.type(value).element.bits < 8 * RUN:
        return site.add("GatherAxis", value, site.literal(places, "i32"), axis=axis)
    rows = reshaped(site, value, (before * size, behind))
    numbers = (np.arange(before)[:, None] * size + places).ravel()
    made = site.add("GatherAxis", rows, site.literal(numbers, "i32"), axis=0)
    return reshaped(site, made, (*shape[:axis], places.size, *shape[axis + 1 :]))


def taken(site: Site, value: int, axis: int, places: Array) -> int:
    """Certain places along an axis, as slices after each other."""
    runs = runs_of(places)
    parts = [sliced(site, value, axis, first, end, step) for first, end, step in runs]
    return parts[0] if len(parts) == 1 else site.add("Concat", *parts, axis=axis)


def runs_of(places: Array) -> list[tuple[int, int, int]]:
    """Places as slices that run forward: first, end, step."""
    found: list[tuple[int, int, int]] = []
    at = 0
    while at < places.size:
        first = int(places[at])
        step = int(places[at + 1]) - first if at + 1 < places.size else 1
        end = at + 1
        if step >= 1:
            while end < places.size and int(places[end]) == first + (end - at) * step:
                end += 1
        count = end - at
        step = step if count > 1 else 1
        found.append((first, first + (count - 1) * step + 1, step))
        at = end
    return found

"""Do byte ranges overlap? Asked of whole columns at once."""

from __future__ import annotations

import numpy as np

from nacre.base.term_columns import Column, Values
from nacre.nem.plan.footprints import Footprint, Pattern


def aligned_overlaps(
    a: Footprint, b: Footprint, rows_a: slice | Column, rows_b: slice | Column, count: int
) -> Column:
    """The indices i at which `a` in row rows_a[i] and `b` in row rows_b[i] share a byte."""
    low_a, high_a = _take(a.low, rows_a), _take(a.high, rows_a)
    low_b, high_b = _take(b.low, rows_b), _take(b.high, rows_b)
    touching = np.asarray((low_a < high_b) & (low_b < high_a))
    if touching.ndim == 0:
        indices = np.arange(count, dtype=np.int64) if touching else np.zeros(0, np.int64)
    else:
        indices = np.flatnonzero(touching)
    if not indices.size or (a.is_dense and b.is_dense):
        return indices
    return indices[_share_bytes(a, b, rows_a, rows_b, indices, count)]


def _take(values: Values, rows: slice | Column) -> Values:
    return values if isinstance(values, int) else values[rows]


def _column_at(values: Values | int, rows: slice | Column, indices: Column, count: int) -> Column:
    column = _take(values, rows)
    return np.broadcast_to(np.asarray(column, np.int64), (count,))[indices]


def _share_bytes(
    a: Footprint,
    b: Footprint,
    rows_a: slice | Column,
    rows_b: slice | Column,
    indices: Column,
    count: int,
) -> Column:
    """Which of the indices whose bounds overlap share a byte; equal situations are asked once."""
    delta = _column_at(b.low, rows_b, indices, count) - _column_at(a.low, rows_a, indices, count)
    index_a = _column_at(a.pattern_index, rows_a, indices, count)
    index_b = _column_at(b.pattern_index, rows_b, indices, count)
    keys = np.stack([index_a, index_b, delta], axis=1)
    distinct, inverse = np.unique(keys, axis=0, return_inverse=True)
    answers = np.array(
        [runs_meet(a.patterns[int(i)], b.patterns[int(j)], int(d)) for i, j, d in distinct], bool
    )
    is_shared: Column = answers[inverse.reshape(-1)]
    return is_shared


def runs_meet(a: Pattern, b: Pattern, delta: int) -> bool:
    """Whether runs `a` and runs `b` moved by `delta` share a byte."""
    return shared_bytes(a, b, delta) is not None


def shared_bytes(a: Pattern, b: Pattern, delta: int) -> tuple[int, int] | None:
    """The first stretch of bytes, counted from the offset of `a`, that both touch."""
    low_b, high_b = b.runs[:, 0] + delta, b.runs[:, 1] + delta
    # The first run of `b` that ends behind the start of each run of `a`.
    first = np.searchsorted(high_b, a.runs[:, 0], side="right")
    inside = first < len(low_b)
    meets = np.zeros(len(a.runs), bool)
    meets[inside] = low_b[first[inside]] < a.runs[inside, 1]
    hits = np.flatnonzero(meets)
    if not hits.size:
        return None
    run = int(hits[0])
    other = int(first[run])
    low = max(int(a.runs[run, 0]), int(low_b[other]))
    return low, min(int(a.runs[run, 1]), int(high_b[other]))


def expand_runs(
    footprint: Footprint, groups: Column, rows: Column
) -> tuple[Column, Column, Column, Column]:
    """Every run of the given rows on its own: group, low, high, and the row it came from."""
    low = np.broadcast_to(np.asarray(footprint.low, np.int64), (rows.max(initial=0) + 1,))[rows] \
        if isinstance(footprint.low, int) else footprint.low[rows]  # fmt: skip
    index = footprint.pattern_index
    if isinstance(index, int):
        runs = footprint.patterns[index].runs
        lows = (low[:, None] + runs[None, :, 0]).reshape(-1)
        highs = (low[:, None] + runs[None, :, 1]).reshape(-1)
        return np.repeat(groups, len(runs)), lows, highs, np.repeat(rows, len(runs))
    parts = [np.zeros((4, 0), np.int64)]
    for number, pattern in enumerate(footprint.patterns):
        chosen = index[rows] == number
        runs = pattern.runs
        lows = (low[chosen][:, None] + runs[None, :, 0]).reshape(-1)
        highs = (low[chosen][:, None] + runs[None, :, 1]).reshape(-1)
        parts.append(
            np.stack(
                [
                    np.repeat(groups[chosen], len(runs)),
                    lows,
                    highs,
                    np.repeat(rows[chosen], len(runs)),
                ]
            )
        )
    joined = np.concatenate(parts, axis=1)
    return joined[0], joined[1], joined[2], joined[3]


def _rank(*columns: Column) -> tuple[list[Column], int]:
    """Numbers replaced by their ranks: they compare the same and are smaller."""
    joined = np.concatenate(columns)
    distinct, ranks = np.unique(joined, return_inverse=True)
    cuts = np.cumsum([column.size for column in columns])[:-1]
    return np.split(ranks.reshape(-1).astype(np.int64), cuts), distinct.size


Intervals = tuple[Column, Column, Column, Column]  # group, low, high, row


def first_meeting(a: Intervals, b: Intervals, size: int) -> tuple[int, int] | None:
    """Rows of the first interval of `a` and one of `b` in its group that share a byte.

    `size` is above every byte. Sorting makes this linear up to a logarithm: among the intervals
    of a group that start before another ends, the one that reaches farthest decides.
    """
    group_a, low_a, high_a, row_a = a
    group_b, low_b, high_b, row_b = b
    if not group_a.size or not group_b.size:
        return None
    if (int(max(group_a.max(), group_b.max())) + 1) * (size + 1) >= 1 << 62:
        (low_a, high_a, low_b, high_b), size = _rank(low_a, high_a, low_b, high_b)
        (group_a, group_b), _ = _rank(group_a, group_b)
    order = np.lexsort((low_b, group_b))
    group_b, low_b, high_b, row_b = group_b[order], low_b[order], high_b[order], row_b[order]
    key_b = group_b * (size + 1) + low_b
    reach = np.maximum.accumulate(group_b * (size + 1) + high_b)
    # In group g, those with low_b < high_a end before this place:
    end = np.searchsorted(key_b, group_a * (size + 1) + high_a, side="left")
    candidate = end > 0
    meets = np.zeros(group_a.size, bool)
    meets[candidate] = reach[end[candidate] - 1] > (group_a * (size + 1) + low_a)[candidate]
    hits = np.flatnonzero(meets)
    if not hits.size:
        return None
    hit = int(hits[np.argmin(row_a[hits])])
    begin = int(np.searchsorted(group_b, group_a[hit], side="left"))
    within = np.arange(begin, int(end[hit]))
    partners = within[high_b[within] > low_a[hit]]
    return int(row_a[hit]), int(row_b[partners].min())

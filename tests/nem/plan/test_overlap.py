"""Footprints and overlaps against sets of bytes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nacre.nem.plan.footprints import Footprint, Pattern, strided_pattern
from nacre.nem.plan.overlap import aligned_overlaps, expand_runs, first_meeting, shared_bytes


def bytes_of(pattern: Pattern, offset: int = 0) -> set[int]:
    return {offset + b for low, high in pattern.runs.tolist() for b in range(low, high)}


shapes = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 9)), min_size=1, max_size=3)
patterns = shapes.map(
    lambda dims: strided_pattern(tuple(d for d, _ in dims), tuple(s for _, s in dims), 8)
)


@given(shapes, st.sampled_from([4, 8, 16, 32]))
def test_a_pattern_is_the_bytes_of_its_elements(dims: list[tuple[int, int]], bits: int) -> None:
    shape, strides = tuple(d for d, _ in dims), tuple(s for _, s in dims)
    expected: set[int] = set()
    for index in np.ndindex(*shape):
        first_bit = sum(i * s for i, s in zip(index, strides, strict=True)) * bits
        expected |= set(range(first_bit // 8, (first_bit + bits + 7) // 8))
    pattern = strided_pattern(shape, strides, bits)
    assert bytes_of(pattern) == expected
    runs = pattern.runs
    assert (runs[1:, 0] > runs[:-1, 1]).all(), "runs are sorted and apart"


@given(patterns, patterns, st.integers(-40, 40))
def test_shared_bytes_are_the_first_common_stretch(a: Pattern, b: Pattern, delta: int) -> None:
    common = bytes_of(a) & bytes_of(b, delta)
    shared = shared_bytes(a, b, delta)
    if shared is None:
        assert not common
    else:
        assert shared[0] == min(common)
        assert set(range(*shared)) <= common


offsets = st.lists(st.integers(0, 60), min_size=1, max_size=8)


@given(patterns, patterns, offsets, offsets)
def test_rows_are_compared_one_by_one(
    a: Pattern, b: Pattern, lows_a: list[int], lows_b: list[int]
) -> None:
    count = min(len(lows_a), len(lows_b))
    lows_a, lows_b = lows_a[:count], lows_b[:count]
    left = Footprint(np.array(lows_a, np.int64), (a,), 0)
    right = Footprint(np.array(lows_b, np.int64), (b,), 0)
    rows = slice(0, count)
    expected = [
        i
        for i, (x, y) in enumerate(zip(lows_a, lows_b, strict=True))
        if bytes_of(a, x) & bytes_of(b, y)
    ]
    assert aligned_overlaps(left, right, rows, rows, count).tolist() == expected


groups = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60)), min_size=1, max_size=8)


@given(patterns, patterns, groups, groups, st.sampled_from([0, 1 << 61]))
def test_the_first_meeting_within_a_group_is_found(
    a: Pattern, b: Pattern, one: list[tuple[int, int]], two: list[tuple[int, int]], far: int
) -> None:
    left, right = _grouped(a, one), _grouped(b, two)
    size = max(int(left[2].max()), int(right[2].max())) + far
    found = first_meeting(left, right, size)
    meetings = {
        (i, j)
        for i, (g, x) in enumerate(one)
        for j, (h, y) in enumerate(two)
        if g == h and bytes_of(a, x) & bytes_of(b, y)
    }
    if found is None:
        assert not meetings
    else:
        assert found in meetings
        assert found[0] == min(i for i, _ in meetings)


def _grouped(
    pattern: Pattern, rows: list[tuple[int, int]]
) -> tuple[
    np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    np.ndarray[tuple[int, ...], np.dtype[np.int64]],
]:
    group = np.array([g for g, _ in rows], np.int64)
    footprint = Footprint(np.array([x for _, x in rows], np.int64), (pattern,), 0)
    return expand_runs(footprint, group, np.arange(len(rows), dtype=np.int64))

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.nac.synthesis.pareto import (
    Point,
    best_order,
    contributions,
    front,
    hypervolume,
    ranks,
)

GRID = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12)


def points_of(cells: list[tuple[int, int]]) -> list[Point]:
    return [(float(x), float(y)) for x, y in cells]


def is_worse(one: Point, other: Point) -> bool:
    return other[0] <= one[0] and other[1] <= one[1] and other != one


@given(GRID)
def test_ranks_are_fronts_taken_off_one_by_one(cells: list[tuple[int, int]]) -> None:
    points = points_of(cells)
    left, rank = set(range(len(points))), 0
    expected = [0] * len(points)
    while left:
        best = {i for i in left if not any(is_worse(points[i], points[j]) for j in left)}
        for i in best:
            expected[i] = rank
        left, rank = left - best, rank + 1
    assert ranks(points) == expected


@given(GRID)
def test_the_front_has_each_point_that_nothing_dominates_once(cells: list[tuple[int, int]]) -> None:
    points = points_of(cells)
    best = {p for p in points if not any(is_worse(p, other) for other in points)}
    found = [points[at] for at in front(points)]
    assert found == sorted(best)


def cells_below(points: list[Point], reference: tuple[int, int]) -> int:
    """Unit squares with a corner that some point dominates, counted one by one."""
    return sum(
        any(p[0] <= x and p[1] <= y for p in points)
        for x in range(reference[0])
        for y in range(reference[1])
    )


@given(GRID, st.tuples(st.integers(1, 6), st.integers(1, 6)))
def test_hypervolume_is_the_squares_that_are_dominated(
    cells: list[tuple[int, int]], reference: tuple[int, int]
) -> None:
    points = points_of(cells)
    assert hypervolume(points, (float(reference[0]), float(reference[1]))) == cells_below(
        points, reference
    )


def test_hypervolume_agrees_with_points_thrown_at_random() -> None:
    random = np.random.default_rng(1)
    points = [(float(x), float(y)) for x, y in random.random((12, 2))]
    thrown = random.random((40_000, 2)) * (0.9, 0.8)
    hit = np.zeros(len(thrown), bool)
    for x, y in points:
        hit |= (thrown[:, 0] >= x) & (thrown[:, 1] >= y)
    assert hypervolume(points, (0.9, 0.8)) == pytest.approx(hit.mean() * 0.72, abs=0.01)


@given(GRID)
def test_what_a_point_adds_alone_is_lost_without_it(cells: list[tuple[int, int]]) -> None:
    points = points_of(cells)
    members = [points[at] for at in front(points)]
    alone = contributions(members, (6.0, 6.0))
    whole = hypervolume(members, (6.0, 6.0))
    for at, part in enumerate(alone):
        others = members[:at] + members[at + 1 :]
        assert part == pytest.approx(whole - hypervolume(others, (6.0, 6.0)))
    order = best_order(points, (6.0, 6.0))
    assert sorted(order) == list(range(len(points)))
    found = ranks(points)
    assert [found[at] for at in order] == sorted(found)

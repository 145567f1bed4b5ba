"""Points that are better in one way or the other: fronts, what they enclose, who adds to that.

Both coordinates are to be small. A point dominates another if it is nowhere worse and somewhere
better.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

Point = tuple[float, float]


def dominates(first: Point, second: Point) -> bool:
    """Whether the first is nowhere worse and somewhere better."""
    return first != second and first[0] <= second[0] and first[1] <= second[1]


def ranks(points: Sequence[Point]) -> list[int]:
    """How many fronts lie before each point; 0 are those that nothing dominates.

    Points in the order of their first coordinate, and of equals of their second, are dominated only
    by those before them; a front ends lowest at its last point.
    """
    found = [0] * len(points)
    lowest: list[Point] = []  # the last point of each front
    for at in sorted(range(len(points)), key=points.__getitem__):
        point = points[at]
        rank = next((r for r, last in enumerate(lowest) if not dominates(last, point)), len(lowest))
        found[at] = rank
        lowest[rank : rank + 1] = [point]
    return found


def front(points: Sequence[Point]) -> list[int]:
    """The points that nothing dominates, by their first coordinate; of equal ones the first."""
    kept: list[int] = []
    best = inf
    for at in sorted(range(len(points)), key=lambda i: (*points[i], i)):
        if points[at][1] < best:
            kept.append(at)
            best = points[at][1]
    return kept


def hypervolume(points: Sequence[Point], reference: Point) -> float:
    """The area of what points dominate, up to a reference that is worse than those that count."""
    area, height = 0.0, reference[1]
    inside = [p for p in points if p[0] < reference[0] and p[1] < reference[1]]
    for at in front(inside):
        area += (reference[0] - inside[at][0]) * (height - inside[at][1])
        height = inside[at][1]
    return area


def contributions(points: Sequence[Point], reference: Point) -> list[float]:
    """The area that each point of a front dominates alone; none where it lies beyond the reference.

    The points of a front that is in order have their neighbours beside them.
    """
    made = [0.0] * len(points)
    inside = [at for at, p in enumerate(points) if p[0] < reference[0] and p[1] < reference[1]]
    order = sorted(inside, key=lambda at: points[at])
    for place, at in enumerate(order):
        right = points[order[place + 1]][0] if place + 1 < len(order) else reference[0]
        above = points[order[place - 1]][1] if place else reference[1]
        made[at] = (right - points[at][0]) * (above - points[at][1])
    return made


def best_order(points: Sequence[Point], reference: Point) -> list[int]:
    """All points, those of earlier fronts first, within a front by what they alone dominate."""
    found = ranks(points)
    order: list[int] = []
    for rank in range(max(found, default=-1) + 1):
        members = [at for at, r in enumerate(found) if r == rank]
        alone = contributions([points[at] for at in members], reference)
        order += [at for _, at in sorted(zip((-a for a in alone), members, strict=True))]
    return order

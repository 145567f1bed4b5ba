"""Pairs of iterations that a window lets overlap, a few sets of pairs at a time.

A narrow window is taken distance by distance. A wide one is halved: cut the iterations into
stretches as long as the window; two of them overlap when they lie in one stretch, or in two
neighbouring ones with the later at an earlier place. Either way the highest binary digit in which
their places differ says which half each lies in, so that a logarithm of the window is enough.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np

from nacre.base.term_columns import Column
from nacre.nem.plan.extents import Extents, Mask
from nacre.nem.plan.overlap import Intervals, aligned_overlaps, expand_runs, first_meeting
from nacre.nem.plan.plan import Access, Block

# Up to this window every distance is asked about on its own.
_WIDEST_BY_DISTANCE = 33


class IterationPairs(ABC):
    """A set of pairs of iterations of one loop: those of equal group, one earlier, one later."""

    def __init__(self, block: Block) -> None:
        self._grid = block.grid

    @abstractmethod
    def _earlier(self, iteration: Column) -> tuple[Mask, Column]:
        """Which of the iterations (rows of the loop's body) can come first, and their groups."""

    @abstractmethod
    def _later(self, iteration: Column) -> tuple[Mask, Column]:
        """Which of the iterations can come second, and their groups."""

    def first_meeting(self, a: Access, b: Access) -> tuple[int, int] | None:
        """Rows of `a` in an earlier and `b` in a later iteration that share a byte."""
        size = max(a.footprint.end, b.footprint.end)
        return first_meeting(self._runs([a], first=True), self._runs([b], first=False), size)

    def may_meet(self, accesses: list[Access], extents: Extents | None) -> Mask:
        """Which accesses may share a byte with which in a later iteration, one of them writing.

        `extents` are those of the accesses in every iteration, where they are known.
        """
        del extents  # of use where pairs of iterations are few
        return np.full((len(accesses), len(accesses)), self._any_meet(accesses))

    def _any_meet(self, accesses: list[Access]) -> bool:
        """Whether any two of many accesses meet, one of them writing; asked of all at once."""
        size = max(access.footprint.end for access in accesses)
        writes = [access for access in accesses if access.is_write]
        reads = [access for access in accesses if not access.is_write]
        return any(
            first_meeting(self._runs(one, first=True), self._runs(other, first=False), size)
            for one, other in ((writes, accesses), (reads, writes))
        )

    def _runs(self, accesses: list[Access], *, first: bool) -> Intervals:
        parts = [np.zeros((4, 0), np.int64)]
        for access in accesses:
            rows = np.arange(access.grid.rows, dtype=np.int64)
            iteration = access.grid.row_in(self._grid, rows)
            chosen, groups = self._earlier(iteration) if first else self._later(iteration)
            parts.append(np.stack(expand_runs(access.footprint, groups, rows[chosen])))
        joined = np.concatenate(parts, axis=1)
        return joined[0], joined[1], joined[2], joined[3]


class _ShiftedPairs(IterationPairs):
    """Iterations that are `distance` apart."""

    def __init__(self, block: Block, distance: int) -> None:
        super().__init__(block)
        self._distance = distance
        parents = block.grid.parent_row
        count = max(0, parents.size - distance)
        earlier = np.arange(count, dtype=np.int64)
        self._rows = earlier[parents[:count] == parents[distance:]]

    def _earlier(self, iteration: Column) -> tuple[Mask, Column]:
        return np.ones(iteration.size, bool), iteration

    def _later(self, iteration: Column) -> tuple[Mask, Column]:
        chosen = self._grid.ordinals[-1][iteration] >= self._distance
        return chosen, iteration[chosen] - self._distance

    def may_meet(self, accesses: list[Access], extents: Extents | None) -> Mask:
        """Which accesses may share a byte with which in a later iteration, one of them writing."""
        if extents is None:
            return super().may_meet(accesses, extents)
        return extents.meet(extents, self._rows, self._rows + self._distance)

    def first_meeting(self, a: Access, b: Access) -> tuple[int, int] | None:
        """Rows of `a` in an earlier and `b` in a later iteration that share a byte."""
        if a.grid is not self._grid or b.grid is not self._grid:
            return super().first_meeting(a, b)
        later = self._rows + self._distance
        hits = aligned_overlaps(a.footprint, b.footprint, self._rows, later, later.size)
        return (int(self._rows[hits[0]]), int(later[hits[0]])) if hits.size else None


class _PairsOfHalves(IterationPairs):
    """Iterations in the two halves of a piece of a stretch, or of two neighbouring stretches."""

    def __init__(self, block: Block, window: int, half: int, *, neighbours: bool) -> None:
        super().__init__(block)
        self._window = window
        self._half = half
        self._neighbours = neighbours

    def _pieces(self, iteration: Column, upper: bool, back: int) -> tuple[Mask, Column]:
        ordinal = self._grid.ordinals[-1][iteration]
        within = ordinal % self._window
        chosen = ((within // self._half) % 2 == upper) & (ordinal - within >= back)
        stretch = (iteration - within - back)[chosen]
        piece = (within // (2 * self._half))[chosen]
        return chosen, stretch * (self._window // self._half + 1) + piece

    def _earlier(self, iteration: Column) -> tuple[Mask, Column]:
        return self._pieces(iteration, self._neighbours, 0)

    def _later(self, iteration: Column) -> tuple[Mask, Column]:
        back = self._window if self._neighbours else 0
        return self._pieces(iteration, not self._neighbours, back)


def iteration_pairs(block: Block, window: int) -> Iterator[IterationPairs]:
    """Sets of pairs that together are all pairs of overlapping iterations, each pair in one."""
    trips = int(block.grid.ordinals[-1].max()) + 1
    window = min(window, trips)
    if window <= _WIDEST_BY_DISTANCE:
        for distance in range(1, window):
            yield _ShiftedPairs(block, distance)
        return
    half = 1
    while half < window:
        yield _PairsOfHalves(block, window, half, neighbours=False)
        yield _PairsOfHalves(block, window, half, neighbours=True)
        half *= 2

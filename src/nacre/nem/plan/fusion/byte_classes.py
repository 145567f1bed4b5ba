"""The bytes of a buffer in classes: those that always are touched together.

An access lies at few different places. Between all ends of these the bytes behave alike, and so do
pieces that the same places cover, such as the lines of a strided tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nacre.base.term_columns import Column, distinct
from nacre.nem.plan.footprints import Runs
from nacre.nem.plan.plan import Access

# Strided tiles at very many offsets: beyond so many runs or pieces a buffer is not followed.
MOST_RUNS = 1 << 22
_VARIES = -1


def expand_ranges(starts: Column, counts: Column) -> Column:
    """The numbers of ranges, one range after the other."""
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(int(counts.sum()))


@dataclass(frozen=True, eq=False)
class ByteClasses:
    """The classes that accesses touch: a place is where one or several of them lie in some rows."""

    place_of: Column  # of every row of every access, one access after the other
    first: Column  # where the classes of a place begin, by place; one more for the end
    classes: Column  # of all places, one place after the other
    count: int  # of classes

    @classmethod
    def of(cls, accesses: Sequence[Access]) -> ByteClasses | None:
        """None where there are too many runs of bytes."""
        patterns, place_of, lows, pattern_of = _places(accesses)
        sizes = np.array([len(runs) for runs in patterns])
        counts = sizes[pattern_of]
        if int(counts.sum()) > MOST_RUNS:
            return None
        starts = np.cumsum(sizes) - sizes
        runs = np.concatenate(patterns)[expand_ranges(starts[pattern_of], counts)]
        ends = runs + np.repeat(lows, counts)[:, None]
        cuts = distinct(ends)
        covered = _CoveredPieces.between(np.searchsorted(cuts, ends), counts)
        if covered is None:
            return None
        return cls(place_of, *covered.merge(cuts.size))


def _places(accesses: Sequence[Access]) -> tuple[list[Runs], Column, Column, Column]:
    """All patterns of bytes, the place of every row, and the offset and pattern of every place."""
    patterns: list[Runs] = []
    numbers: dict[int, int] = {}  # of patterns, by id of their runs
    size = 1 + max(access.footprint.end for access in accesses)
    codes: list[int] = []
    varying: list[tuple[int, Column]] = []
    for access in accesses:
        footprint = access.footprint
        known = [numbers.setdefault(id(p.runs), len(numbers)) for p in footprint.patterns]
        if len(numbers) > len(patterns):
            patterns += [p.runs for p in footprint.patterns if numbers[id(p.runs)] >= len(patterns)]
        index, low = footprint.pattern_index, footprint.low
        if isinstance(index, int) and isinstance(low, int):
            codes.append(known[index] * size + low)
        else:
            varying.append((len(codes), np.array(known, np.int64)[index] * size + low))
            codes.append(_VARIES)
    rows = np.array([access.grid.rows for access in accesses])
    by_row = np.repeat(np.array(codes), rows)
    first = np.cumsum(rows) - rows
    for index, code in varying:
        by_row[first[index] : first[index] + rows[index]] = code
    places, place_of = np.unique(by_row, return_inverse=True)
    return patterns, place_of, places % size, places // size


@dataclass(frozen=True, eq=False)
class _CoveredPieces:
    """The pieces inside the runs of places, one place after the other."""

    first: Column  # where the pieces of a place begin; one more for the end
    pieces: Column

    @classmethod
    def between(cls, ends: Runs, runs_of_place: Column) -> _CoveredPieces | None:
        """Of runs, given by the indices of their ends among the cuts; None where too many."""
        counts = ends[:, 1] - ends[:, 0]
        if int(counts.sum()) > MOST_RUNS:
            return None
        before = np.concatenate([[0], np.cumsum(counts)])
        runs_before = np.concatenate([[0], np.cumsum(runs_of_place)])
        return cls(before[runs_before], expand_ranges(ends[:, 0], counts))

    def merge(self, count: int) -> tuple[Column, Column, int]:
        """Where the classes of each place begin, these classes, and how many there are.

        Pieces that the same places cover have the same sum of the places' random weights. Those
        with equal sums are compared: where one differs after all, every piece is its own class.
        """
        place = np.repeat(np.arange(self.first.size - 1), np.diff(self.first))
        sums = np.zeros(count, np.uint64)
        np.add.at(sums, self.pieces, _random_weights(self.first.size)[place])
        _, example, class_of = np.unique(sums, return_index=True, return_inverse=True)
        by_piece = place[np.argsort(self.pieces, kind="stable")]
        if not _are_alike(by_piece, np.bincount(self.pieces, minlength=count), example[class_of]):
            return self.first, self.pieces, count
        is_example = example[class_of[self.pieces]] == self.pieces
        first = np.concatenate([[0], np.cumsum(is_example)])[self.first]
        return first, class_of[self.pieces[is_example]], example.size


def _random_weights(count: int) -> npt.NDArray[np.uint64]:
    return np.random.default_rng(0).integers(1 << 62, size=count, dtype=np.uint64)


def _are_alike(places: Column, counts: Column, example: Column) -> bool:
    """Whether every piece is covered by the same places as its example; places piece by piece."""
    if not np.array_equal(counts, counts[example]):
        return False
    starts = np.cumsum(counts) - counts
    return np.array_equal(places, places[expand_ranges(starts[example], counts)])

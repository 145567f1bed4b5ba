"""Between which bytes accesses lie, as columns: of most pairs that tells that they cannot meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nacre.base.term_columns import Column
from nacre.nem.plan.plan import Access

Mask = npt.NDArray[np.bool_]

# Cells of a table: beyond, pairs are compared a row of the table at a time, or not here at all.
_MOST_COMPARED = 1 << 20
_MOST_HELD = 1 << 22


@dataclass(frozen=True, eq=False)
class Extents:
    """The first byte and the one past the last of every access, by access and row of its grid."""

    low: Column
    high: Column
    writes: Mask

    @staticmethod
    def of_rows(accesses: Sequence[Access], rows: int) -> Extents | None:
        """In every row of the grid that all accesses share; None where that would be a lot."""
        if len(accesses) * rows > _MOST_HELD:
            return None
        shape = (len(accesses), rows)
        low, high = np.empty(shape, np.int64), np.empty(shape, np.int64)
        for number, access in enumerate(accesses):
            low[number], high[number] = access.footprint.low, access.footprint.high
        return Extents(low, high, _writes(accesses))

    @staticmethod
    def of_all_rows(accesses: Sequence[Access]) -> Extents:
        """Over all rows of each access's own grid: a table of one row."""
        found = [access.footprint.extent for access in accesses]
        low, high = np.array(found, np.int64).reshape(-1, 2).T
        return Extents(low[:, None], high[:, None], _writes(accesses))

    def meet(self, other: Extents, rows: Column | slice, other_rows: Column | slice) -> Mask:
        """Which accesses may share a byte with which others in some of the rows, one writing."""
        low, high = self.low[:, rows], self.high[:, rows]
        other_low, other_high = other.low[:, other_rows], other.high[:, other_rows]
        if len(low) * other_low.size <= _MOST_COMPARED:
            touch: Mask = (low[:, None] < other_high) & (other_low < high[:, None])
            found: Mask = np.any(touch, axis=-1)
        else:
            pairs = zip(low, high, strict=True)
            touching = [((a < other_high) & (other_low < b)).any(axis=-1) for a, b in pairs]
            found = np.array(touching)
        return found & (self.writes[:, None] | other.writes)


def _writes(accesses: Sequence[Access]) -> Mask:
    return np.array([access.is_write for access in accesses], bool)

"""Reads that a loop repeats although nothing in it writes there, as of weights for all tiles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nacre.base.term_columns import Column, distinct
from nacre.nem.plan.fusion.byte_classes import ByteClasses, expand_ranges
from nacre.nem.plan.plan import Access


def repeated_reads(accesses: Sequence[Access], classes: ByteClasses) -> npt.NDArray[np.bool_]:
    """Which rows, of all accesses one after the other, read what the row before has read.

    They read the same bytes in a later iteration of a loop in which nothing writes any of these.
    """
    sizes = np.array([access.grid.rows for access in accesses])
    first = np.cumsum(sizes) - sizes
    repeated = np.zeros(int(sizes.sum()), bool)
    candidates = [index for index, access in enumerate(accesses) if _stays_in_place(access)]
    if not candidates:
        return repeated
    is_written = _written_in_loops(accesses, candidates, first, classes)
    for index, written in zip(candidates, is_written.tolist(), strict=True):
        if not written:
            rows = repeated[first[index] : first[index] + sizes[index]]
            parents = accesses[index].grid.parent_row
            rows[1:] = parents[1:] == parents[:-1]
    return repeated


def _stays_in_place(access: Access) -> bool:
    """Whether it is a read of the same bytes in every iteration."""
    footprint = access.footprint
    is_fixed = isinstance(footprint.low, int) and isinstance(footprint.pattern_index, int)
    return is_fixed and not access.is_write and access.grid.rows > 1


def _written_in_loops(
    accesses: Sequence[Access], reads: Sequence[int], first: Column, classes: ByteClasses
) -> npt.NDArray[np.bool_]:
    """Whether the innermost loop around each of some fixed reads writes to its bytes."""
    loops = np.array([accesses[index].task.loops[-1].position for index in reads])
    places = classes.place_of[first[reads]]
    read, of_read = _by_class(places, np.arange(len(reads)), classes)
    keys = loops[read] * classes.count + of_read
    met = np.isin(keys, _writes_by_loop(accesses, set(loops.tolist()), first, classes))
    return np.bincount(read[met], minlength=len(reads)) > 0


def _writes_by_loop(
    accesses: Sequence[Access], loops: set[int], first: Column, classes: ByteClasses
) -> Column:
    """The classes that are written in each of some loops, as numbers of both."""
    around = [
        [loop.position for loop in access.task.loops if loop.position in loops]
        if access.is_write
        else []
        for access in accesses
    ]
    counts = np.array([len(positions) for positions in around])
    places = classes.first.size
    rows = np.diff(first, append=classes.place_of.size)
    owner = np.repeat(np.arange(len(accesses)), rows)
    is_inside = counts[owner] > 0
    writes = distinct(owner[is_inside] * places + classes.place_of[is_inside])
    owner, place = writes // places, writes % places
    # Once for each of the loops around it.
    starts = np.cumsum(counts) - counts
    loop = np.array([position for positions in around for position in positions], np.int64)
    loop = loop[expand_ranges(starts[owner], counts[owner])]
    position, written = _by_class(np.repeat(place, counts[owner]), loop, classes)
    return distinct(position * classes.count + written)


def _by_class(places: Column, owners: Column, classes: ByteClasses) -> tuple[Column, Column]:
    """The classes of places, and for each the owner of its place."""
    counts = classes.first[places + 1] - classes.first[places]
    return np.repeat(owners, counts), classes.classes[expand_ranges(classes.first[places], counts)]

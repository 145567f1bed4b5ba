"""What tiles of a size take in L1: a ring of tiles, what all of them share, blocks of weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nacre.base.term_columns import Column
from nacre.compile.partition.layers import Layer, TileCut
from nacre.compile.tiling.costs import TileSizes
from nacre.compile.tiling.residency import Residency
from nacre.compile.tiling.spaces import Spaces, align_up, space_columns, spaces_of
from nacre.compile.tiling.tiling import Tiling


@dataclass(frozen=True)
class Footprint:
    """What a layer takes in L1: a ring of tiles, what all tiles share, blocks of weights."""

    spaces: Spaces
    sizes: tuple[int, ...]  # of spaces
    w_bytes: int  # a block

    @cached_property
    def ring(self) -> int:
        """Bytes of one tile."""
        return sum(s for s, fixed in zip(self.sizes, self.spaces.fixed, strict=True) if not fixed)

    @cached_property
    def shared_bytes(self) -> int:
        """Bytes of what is loaded once."""
        return sum(s for s, fixed in zip(self.sizes, self.spaces.fixed, strict=True) if fixed)

    def total(self, tiling: Tiling) -> int:
        """All of it."""
        return tiling.slots * self.ring + self.shared_bytes + tiling.w_slots * self.w_bytes


def footprint(layer: Layer, tiling: Tiling, resident: Residency) -> Footprint:
    """What a layer takes in L1 with tiles of a size, beside the tensors that stay there."""
    spaces = spaces_of(layer, layer.cut(tiling.rows, tiling.columns), resident.of(layer))
    rows, columns = np.array([tiling.rows]), np.array([tiling.columns])
    ((_, sizes),) = sizes_by_cut(layer, rows, columns)
    taken = (int(size[0]) for size in space_columns(layer, spaces, sizes))
    w_bytes = 0
    if layer.packed is not None and not resident.holds_weights(layer):
        w_bytes = align_up(layer.packed.block_bytes(tiling.columns))
    return Footprint(spaces, tuple(taken), w_bytes)


@dataclass(frozen=True, eq=False)
class FootprintColumns:
    """What tiles of every size take in L1."""

    ring: Column  # one tile
    shared: Column  # what all tiles share
    weights: Column  # a block of weights

    def total(self, slots: Column, w_slots: Column) -> Column:
        """All of it, with so many tiles and blocks of weights."""
        return slots * self.ring + self.shared + w_slots * self.weights


def footprint_columns(
    layer: Layer, sizes: TileSizes, spaces: Spaces, *, holds_weights: bool
) -> FootprintColumns:
    """What tiles take in L1, beside the tensors that stay there."""
    taken = space_columns(layer, spaces, sizes)
    ring, shared, weights = (np.zeros(len(sizes.rows), np.int64) for _ in range(3))
    for size, is_fixed in zip(taken, spaces.fixed, strict=True):
        if is_fixed:
            shared += size
        else:
            ring += size
    if layer.packed is not None and not holds_weights:
        weights += align_up(layer.packed.block_bytes(sizes.columns))
    return FootprintColumns(ring, shared, weights)


def sizes_by_cut(layer: Layer, rows: Column, columns: Column) -> Iterator[tuple[Column, TileSizes]]:
    """Tiles that cut the same axes, and their places among all."""
    are_cut_rows = (rows < layer.rows) | (layer.images > 1)
    are_cut_columns = columns < layer.columns
    for cut_rows in (False, True):
        for cut_columns in (False, True):
            cut = TileCut(cut_rows, cut_columns)
            at = np.flatnonzero((are_cut_rows == cut_rows) & (are_cut_columns == cut_columns))
            if len(at):
                yield at, TileSizes.of(layer, rows[at], columns[at], cut)

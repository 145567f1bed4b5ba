"""The size of a layer's tiles, as a value."""

from __future__ import annotations

from dataclasses import dataclass

from nacre.compile.partition.layers import Layer

_GRAIN = 16  # columns of an engine come in multiples of this


@dataclass(frozen=True)
class Tiling:
    """The size of a layer's tiles, how many of each kind L1 holds at a time, who computes them."""

    rows: int
    columns: int
    slots: int = 1  # tiles
    w_slots: int = 1  # blocks of weights
    engines: int = 1
    abreast: int = 1  # blocks of columns that are computed at a time, each by as many engines

    @property
    def row_engines(self) -> int:
        """The engines that share out the rows of one block."""
        return self.engines // self.abreast

    def begins_block(self, engine: int) -> bool:
        """Whether an engine is the first of those that share out a block."""
        return engine % self.row_engines == 0

    def column_blocks(self, columns: int) -> tuple[tuple[int, int], ...]:
        """First column and number of columns of every block."""
        firsts = range(0, columns, self.columns)
        return tuple((c, min(self.columns, columns - c)) for c in firsts)

    def __str__(self) -> str:
        kinds = [("rows", self.row_engines), ("columns", self.abreast)]
        shares = [f"{count} by {kind}" for kind, count in kinds if count > 1]
        on = f", engines: {', '.join(shares)}" if shares else ""
        return f"{self.rows} rows by {self.columns} columns, {self.slots} slots{on}"


def keeps_weights(layer: Layer) -> bool:
    """Whether the weights of a layer stay in L1 for others, and for them alone."""
    return layer.packed is not None and layer.packed.stays


def columns_of_engine(columns: int, engines: int) -> int:
    """The columns whose weights each of some engines keeps."""
    share = -(-columns // engines)
    return columns if engines == 1 else min(columns, -(-share // _GRAIN) * _GRAIN)

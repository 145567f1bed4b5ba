"""The size of a layer's tiles, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Split = Literal["rows", "columns"]


@dataclass(frozen=True)
class Tiling:
    """The size of a layer's tiles, how many of each kind L1 holds at a time, who computes them."""

    rows: int
    columns: int
    slots: int = 1  # tiles
    w_slots: int = 1  # blocks of weights
    engines: int = 1
    split: Split = "rows"  # what engines share out

    def column_blocks(self, columns: int) -> tuple[tuple[int, int], ...]:
        """First column and number of columns of every block."""
        firsts = range(0, columns, self.columns)
        return tuple((c, min(self.columns, columns - c)) for c in firsts)

    def __str__(self) -> str:
        on = f", {self.engines} engines by {self.split}" if self.engines > 1 else ""
        return f"{self.rows} rows by {self.columns} columns, {self.slots} slots{on}"

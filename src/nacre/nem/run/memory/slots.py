"""Operands bound to memory: where they begin in each row, and the arrays over them."""

from __future__ import annotations

from nacre.kernels.interface.call import Array
from nacre.nem.model.program import Operand
from nacre.nem.plan.grid import Grid
from nacre.nem.run.machine.signatures import extents, offsets
from nacre.nem.run.memory.layouts import Layout
from nacre.nem.run.memory.memory import Memory, Storage

# Offsets in rings repeat and their views are kept; those that walk through DDR do not.
_MOST_VIEWS = 1024


class Place:
    """Where an operand lies: its buffer's bytes, and its offset in every row."""

    __slots__ = ("_column", "_offset", "operand", "storage")

    def __init__(self, operand: Operand, grid: Grid, memory: Memory) -> None:
        if operand.region is None or operand.region.buffer is None:
            raise ValueError("a region of a program with errors")
        self.operand = operand
        self.storage: Storage = memory.storage(operand.region.buffer)
        found = offsets(operand.region, grid)
        self._offset = found if isinstance(found, int) else 0
        self._column: list[int] | None = None if isinstance(found, int) else found.tolist()

    def offset(self, row: int) -> int:
        """The first byte in the buffer."""
        column = self._column
        return self._offset if column is None else column[row]


class Extent:
    """How many bytes an operand has in every row."""

    __slots__ = ("_column", "_size")

    def __init__(self, operand: Operand, grid: Grid) -> None:
        if operand.region is None:
            raise ValueError("a region of a program with errors")
        found = extents(operand.region, grid)
        self._size = found if isinstance(found, int) else 0
        self._column: list[int] | None = None if isinstance(found, int) else found.tolist()

    def size(self, row: int) -> int:
        """The number of bytes."""
        column = self._column
        return self._size if column is None else column[row]


class Slot:
    """An operand with a layout: arrays over its elements, kept by offset."""

    __slots__ = ("_views", "layout", "place", "storage")

    def __init__(self, place: Place, layout: Layout) -> None:
        self.place = place
        self.storage = place.storage
        self.layout = layout
        self._views: dict[int, Array] = {}

    def array(self, row: int) -> Array:
        """The elements in a row; a copy where they are packed."""
        offset = self.place.offset(row)
        found = self._views.get(offset)
        if found is None:
            found = self.layout.array(self.storage.data, offset)
            if self.layout.is_view and len(self._views) < _MOST_VIEWS:
                self._views[offset] = found
        return found

    def span(self, row: int) -> tuple[int, int]:
        """The bytes from the first to the last element."""
        low = self.place.offset(row)
        return low, low + self.layout.span

"""Operands bound to memory: where they begin in each row, and the arrays over them."""

from __future__ import annotations

from nacre.kernels.interface.call import Array
from nacre.kernels.interface.layouts import Layout
from nacre.nem.model.program import Operand
from nacre.nem.plan.grid import Grid
from nacre.nem.run.machine.signatures import extents, offsets
from nacre.nem.run.memory.memory import Memory, Storage

# Offsets in rings repeat and their views are kept; those that walk through DDR do not.
_MOST_VIEWS = 1024


class OperandOffsets:
    """Where an operand lies: its buffer's bytes, and its offset in every row."""

    __slots__ = ("_column", "_offset", "operand", "storage")

    def __init__(self, operand: Operand, grid: Grid, memory: Memory) -> None:
        if operand.region is None or operand.region.buffer is None:
            raise ValueError("a region of a program with errors")
        self.operand = operand
        self.storage: Storage = memory.storage_of(operand, operand.region.buffer)
        by_row = offsets(operand.region, grid)
        self._offset = by_row if isinstance(by_row, int) else 0
        self._column: list[int] | None = None if isinstance(by_row, int) else by_row.tolist()

    def offset(self, row: int) -> int:
        """The first byte in the buffer."""
        column = self._column
        return self._offset if column is None else column[row]


class OperandSizes:
    """How many bytes an operand has in every row."""

    __slots__ = ("_column", "_size")

    def __init__(self, operand: Operand, grid: Grid) -> None:
        if operand.region is None:
            raise ValueError("a region of a program with errors")
        by_row = extents(operand.region, grid)
        self._size = by_row if isinstance(by_row, int) else 0
        self._column: list[int] | None = None if isinstance(by_row, int) else by_row.tolist()

    def size(self, row: int) -> int:
        """The number of bytes."""
        column = self._column
        return self._size if column is None else column[row]


class BoundOperand:
    """An operand with a layout: arrays over its elements, kept by offset."""

    __slots__ = ("_views", "layout", "offsets", "storage")

    def __init__(self, offsets: OperandOffsets, layout: Layout) -> None:
        self.offsets = offsets
        self.storage = offsets.storage
        self.layout = layout
        self._views: dict[int, Array] = {}

    def array(self, row: int) -> Array:
        """The elements in a row; a copy where they are packed."""
        offset = self.offsets.offset(row)
        view = self._views.get(offset)
        if view is None:
            view = self.layout.array(self.storage.data, offset)
            if self.layout.is_view and len(self._views) < _MOST_VIEWS:
                self._views[offset] = view
        return view

    def span(self, row: int) -> tuple[int, int]:
        """The bytes from the first to the last element."""
        low = self.offsets.offset(row)
        return low, low + self.layout.span

"""Operands bound to flat memories: where they begin in each row, and the arrays over them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nacre.base.elements import ELEMENT_TYPES, GRAPH_TYPES
from nacre.base.term_columns import Values
from nacre.kernels.interface.call import Array, Quantization, TensorType
from nacre.kernels.interface.layouts import Layout, layout
from nacre.tcb.image import STREAM, Operand, Quant
from nacre.tcb.machine.memory import FlatMemory
from nacre.tcb.machine.tree import Grid

_TRUTH = "bool"  # lies in memory as a byte, 0 or 1


class UnboundOperandError(Exception):
    """An operand that no memory holds; the message says why, the row where first."""

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message)
        self.row = row


class BoundOperand:
    """An operand of a block, wherever it lies in each row."""

    def __init__(self, operand: Operand, grid: Grid, memory: FlatMemory) -> None:
        """`memory` is that which it names, or the one of its stream."""
        self.operand, self.memory = operand, memory
        self.is_truth = operand.elem == _TRUTH
        self.layout = layout_of(operand)
        self.span = self.layout.span
        if operand.compressed_bytes is not None:
            self.span = operand.compressed_bytes
        at = 0 if operand.memory == STREAM else grid.evaluate(operand.address)
        self._require_inside(at)
        self._address = at if isinstance(at, int) else 0
        self._column: list[int] | None = None if isinstance(at, int) else at.tolist()

    def _require_inside(self, at: Values) -> None:
        low = np.asarray(at)
        outside = np.flatnonzero((low < 0) | (low > self.memory.data.size - self.span))
        if outside.size:
            row = int(outside[0])
            first = int(low.reshape(-1)[row])
            used = f"nothing lies beyond {self.memory.data.size} there"
            message = f"bytes {first} to {first + self.span} of {self.memory.name}, but {used}"
            raise UnboundOperandError(message, row)

    def address(self, row: int) -> int:
        """The first byte."""
        return self._address if self._column is None else self._column[row]

    def array(self, row: int) -> Array:
        """The elements; a copy where they are packed."""
        return self.layout.array(self.memory.data, self.address(row))

    def is_written(self, row: int) -> bool:
        """Whether all of its bytes have been written."""
        return self.layout.holds(self.memory.written, self.address(row))

    def mark_written(self, row: int, flags: Array | bool = True) -> None:
        """The elements have been written, or those of them that a copy had to give."""
        self.layout.put_flags(self.memory.written, self.address(row), flags)

    def put(self, row: int, values: Array) -> None:
        """Write elements."""
        self.layout.put(self.memory.data, self.address(row), values)


def layout_of(operand: Operand) -> Layout:
    """How the elements of an operand lie; compressed ones as they are when they come out."""
    name = "u8" if operand.elem == _TRUTH else operand.elem
    strides = None if operand.compression is not None else operand.strides
    return layout(ELEMENT_TYPES[name], operand.dims, strides)


def tensor_type(operand: Operand) -> TensorType:
    """What kernels know of an operand."""
    return TensorType(GRAPH_TYPES[operand.elem], operand.dims, _quantization(operand.quant))


def tensor_types(operands: Sequence[Operand | None]) -> tuple[TensorType | None, ...]:
    """The same for several, of which some may be left out."""
    return tuple(None if operand is None else tensor_type(operand) for operand in operands)


def _quantization(quant: Quant | None) -> Quantization | None:
    if quant is None:
        return None
    scales, zeros = np.array(quant.scales, np.float32), np.array(quant.zero_points, np.int32)
    return Quantization(scales, zeros, quant.axis, quant.group_size)

"""The bytes that the operands of blocks touch, in every instance."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from nacre.base.elements import GRAPH_TYPES, bytes_needed
from nacre.base.term_columns import Column
from nacre.nem.plan.footprints import Pattern, dense_pattern, strided_pattern
from nacre.tcb.image import STREAM, Operand
from nacre.tcb.machine.tree import PlacedBlock


class BlockAccess(Struct, frozen=True, eq=False):
    """An operand of a block: its memory, where it begins in every instance, and its bytes there."""

    operand: Operand
    is_write: bool
    number: int  # among the inputs, or the outputs
    address: Column
    pattern: Pattern

    @property
    def name(self) -> str:
        """In words."""
        return f"output {self.number}" if self.is_write else f"input {self.number}"


def block_accesses(found: PlacedBlock) -> Iterator[BlockAccess]:
    """The operands of a block that lie in a memory, reads first."""
    for is_write, operands in ((False, found.block.inputs), (True, found.block.outputs)):
        for number, operand in enumerate(operands):
            if operand is not None and operand.memory != STREAM:
                address = found.grid.column(operand.address)
                yield BlockAccess(operand, is_write, number, address, operand_pattern(operand))


def operand_pattern(operand: Operand) -> Pattern:
    """The bytes of an operand, counted from its address."""
    if operand.compressed_bytes is not None:
        return dense_pattern(operand.compressed_bytes)
    element = GRAPH_TYPES[operand.elem]
    if operand.strides is None:
        count = 1
        for dim in operand.dims:
            count *= dim
        return dense_pattern(bytes_needed(count, element))
    return strided_pattern(operand.dims, operand.strides, element.bits)

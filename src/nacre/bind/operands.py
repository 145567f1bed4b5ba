"""Operands of tasks at physical addresses."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from nacre.bind.counters import Counters, add
from nacre.bind.forms import region_of
from nacre.nem.model.program import Operand as TaskOperand
from nacre.nem.model.program import Task
from nacre.tcb.image import STREAM, Operand


class OperandBinder:
    """Puts operands into their places; `addresses` are those of buffers, by their index."""

    def __init__(self, addresses: Mapping[int, int], streamed: Collection[int] = ()) -> None:
        self._addresses = addresses
        self._streamed = streamed  # operands of tasks whose values are never written, by id

    def place(
        self, task: Task, access: str, forms: Sequence[Operand], counters: Counters
    ) -> tuple[Operand, ...]:
        """The operands that a task reads, or writes, as their forms have them."""
        found = [operand for operand in task.operands if operand.access == access]
        return tuple(
            self._place(operand, form, counters) for operand, form in zip(found, forms, strict=True)
        )

    def _place(self, operand: TaskOperand, form: Operand, counters: Counters) -> Operand:
        rest = (form.elem, form.dims, form.strides, form.quant, form.compression)
        if id(operand) in self._streamed:
            return Operand(STREAM, 0, *rest)
        region = region_of(operand)
        if region.buffer is None:
            raise ValueError("a region of a program with errors")
        address = add(counters.term(region.offset), self._addresses[region.buffer.index])
        return Operand(form.memory, address, *rest, form.compressed_bytes)

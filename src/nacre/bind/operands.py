"""Operands of tasks at physical addresses."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from nacre.base.terms import Term
from nacre.bind.counters import Counters, add_number
from nacre.bind.forms import TaskForm
from nacre.nem.model.program import Operand as TaskOperand
from nacre.nem.model.program import Region, Task
from nacre.tcb.image import STREAM, Operand, Placement

Operands = tuple[Operand, ...]


class OperandBinder:
    """Puts operands into their places; `placements` are those of buffers, by their index.

    A region has one address, whoever uses it: its loops are around all of them.
    """

    def __init__(self, placements: Mapping[int, Placement], streamed: Collection[int] = ()) -> None:
        self._places = {index: (p.memory, p.address) for index, p in placements.items()}
        self._streamed = streamed  # operands of tasks whose values are never written, by id
        self._addresses: dict[int, Term] = {}  # those that vary, by id of the region

    def place(self, task: Task, form: TaskForm, counters: Counters) -> tuple[Operands, Operands]:
        """The operands that a task reads and those that it writes, as its form has them."""
        inputs: list[Operand] = []
        outputs: list[Operand] = []
        for operand in task.operands:
            if operand.access == "read":
                inputs.append(self._place(operand, form.inputs[len(inputs)], counters))
            else:
                outputs.append(self._place(operand, form.outputs[len(outputs)], counters))
        return tuple(inputs), tuple(outputs)

    def _place(self, operand: TaskOperand, form: Operand, counters: Counters) -> Operand:
        elem, dims, strides, quant = form.elem, form.dims, form.strides, form.quant
        if self._streamed and id(operand) in self._streamed:
            return Operand(STREAM, 0, elem, dims, strides, quant, form.compression)
        region = operand.region
        if region is None or region.buffer is None:
            raise ValueError("a region of a program with errors")
        offset = region.offset
        memory, first = self._places[region.buffer.index]
        address = offset + first if type(offset) is int else self._vary(region, first, counters)
        if form.compression is None:
            return Operand(memory, address, elem, dims, strides, quant)
        compressed = (form.compression, form.compressed_bytes)
        return Operand(memory, address, elem, dims, strides, quant, *compressed)

    def _vary(self, region: Region, first: int, counters: Counters) -> Term:
        """The address of a region over counters; `first` is that of its buffer."""
        address = self._addresses.get(id(region))
        if address is None:
            address = self._addresses[id(region)] = add_number(counters.term(region.offset), first)
        return address

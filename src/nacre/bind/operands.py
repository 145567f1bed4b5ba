"""Operands of tasks at physical addresses."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from nacre.bind.counters import Counters
from nacre.bind.forms import TaskForm
from nacre.nem.model.program import Task
from nacre.tcb.image import STREAM, Operand, Placement

Operands = tuple[Operand, ...]


class OperandBinder:
    """Puts operands into their places; `placements` are those of buffers, by their index."""

    def __init__(self, placements: Mapping[int, Placement], streamed: Collection[int] = ()) -> None:
        self._places = {index: (p.memory, p.address) for index, p in placements.items()}
        self._streamed = streamed  # operands of tasks whose values are never written, by id

    def place(self, task: Task, form: TaskForm, counters: Counters) -> tuple[Operands, Operands]:
        """The operands that a task reads and those that it writes, as its form has them."""
        inputs, outputs = iter(form.inputs), iter(form.outputs)
        read: list[Operand] = []
        written: list[Operand] = []
        for operand in task.operands:
            is_read = operand.access == "read"
            of, found = (next(inputs), read) if is_read else (next(outputs), written)
            if self._streamed and id(operand) in self._streamed:
                found.append(replace(of, memory=STREAM, compressed_bytes=None))
                continue
            region = operand.region
            if region is None or region.buffer is None:
                raise ValueError("a region of a program with errors")
            memory, first = self._places[region.buffer.index]
            offset = region.offset
            address = offset + first if type(offset) is int else counters.address(offset, first)
            if of.compression is None:  # which is most of them
                found.append(Operand(memory, address, of.elem, of.dims, of.strides, of.quant))
            else:
                found.append(replace(of, memory=memory, address=address))
        return tuple(read), tuple(written)

"""Operands of tasks at physical addresses."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from nacre.base.terms import Term
from nacre.bind.counters import Counters, add_number
from nacre.bind.forms import TaskForm
from nacre.nem.model.program import Task
from nacre.tcb.image import STREAM, Operand, Placement

Operands = tuple[Operand, ...]


class OperandBinder:
    """Puts operands into their places; `placements` are those of buffers, by their index."""

    def __init__(self, placements: Mapping[int, Placement], streamed: Collection[int] = ()) -> None:
        self._places = {index: (p.memory, p.address) for index, p in placements.items()}
        self._forms: list[Operand] = []
        self._streamed = streamed  # operands of tasks whose values are never written, by id

    def place(self, task: Task, form: TaskForm, counters: Counters) -> tuple[Operands, Operands]:
        """The operands that a task reads and those that it writes, as its form has them."""
        read: list[Operand] = []
        written: list[Operand] = []
        streamed, places = self._streamed, self._places
        for operand, of in zip(task.operands, form.operands, strict=True):
            region = operand.region
            if region is None or (buffer := region.buffer) is None:
                raise ValueError("a region of a program with errors")
            offset = region.offset
            if streamed and id(operand) in streamed:
                made = replace(of, memory=STREAM, compressed_bytes=None)
            elif type(offset) is not int:
                made = self._at_term(of, buffer.index, offset, counters)
            elif of.compression is None:  # which is most of them
                memory, first = places[buffer.index]
                made = Operand(memory, first + offset, of.elem, of.dims, of.strides, of.quant)
            else:
                made = self._at(of, buffer.index, offset)
            (read if operand.access == "read" else written).append(made)
        return tuple(read), tuple(written)

    def _at_term(self, of: Operand, buffer: int, offset: object, counters: Counters) -> Operand:
        """An operand that lies elsewhere in every iteration, where tiles of others did."""
        key = (id(offset), buffer, id(of))  # equal terms of a program are one value, mostly
        made = counters.operands.get(key)
        if made is None:
            made = counters.operands[key] = self._at(of, buffer, counters.term(offset))
            self._forms.append(of)  # so that its id stays its own
        return made

    def _at(self, of: Operand, buffer: int, offset: Term) -> Operand:
        memory, first = self._places[buffer]
        address = add_number(offset, first)
        if of.compression is None:
            return Operand(memory, address, of.elem, of.dims, of.strides, of.quant)
        return replace(of, memory=memory, address=address)

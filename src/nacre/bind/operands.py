"""Operands of tasks at physical addresses."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from nacre.base.terms import Term
from nacre.bind.counters import Counters, OperandKey, add_number
from nacre.bind.forms import QuantBinder, TaskForm
from nacre.nem.model.program import Task
from nacre.tcb.image import STREAM, Operand, Placement, Quant

Operands = tuple[Operand, ...]


class OperandBinder:
    """Puts operands into their places; `placements` are those of buffers, by their index."""

    def __init__(
        self,
        placements: Mapping[int, Placement],
        quants: QuantBinder,
        streamed: Collection[int] = (),
    ) -> None:
        self._quants = quants
        self._places = {index: (p.memory, p.address) for index, p in placements.items()}
        self._forms: list[Operand] = []
        self._streamed = streamed  # operands of tasks whose values are never written, by id

    def place(self, task: Task, form: TaskForm, counters: Counters) -> tuple[Operands, Operands]:
        """The operands that a task reads and those that it writes, as its form has them."""
        read: list[Operand] = []
        written: list[Operand] = []
        streamed, places, known = self._streamed, self._places, counters.operands
        quants = self._quants.known if form.takes_quants else None
        for operand, of in zip(task.operands, form.operands, strict=True):
            region = operand.region
            if region is None or (buffer := region.buffer) is None:
                raise ValueError("a region of a program with errors")
            offset, quant, index = region.offset, of.quant, buffer.index
            if quants is not None and (asked := region.quant) is not None:
                rank = len(of.dims)
                quant = quants.get((id(asked), rank)) or self._quants.make(asked, rank)
            if streamed and id(operand) in streamed:
                made = replace(of, memory=STREAM, quant=quant, compressed_bytes=None)
            elif type(offset) is not int:
                # Equal terms of a program are one value, mostly.
                key = (id(offset), index, id(of), id(quant))
                made = known.get(key) or self._at_term(key, of, offset, quant, counters)
            elif of.compression is None:  # which is most of them
                memory, first = places[index]
                made = Operand(memory, first + offset, of.elem, of.dims, of.strides, quant)
            else:
                memory, first = places[index]
                made = _placed(of, memory, first + offset, quant)
            (read if operand.access == "read" else written).append(made)
        return tuple(read), tuple(written)

    def _at_term(
        self, key: OperandKey, of: Operand, offset: object, quant: Quant | None, counters: Counters
    ) -> Operand:
        """An operand that lies elsewhere in every iteration."""
        place = key[:2]
        address = counters.addresses.get(place)
        if address is None:
            address = add_number(counters.term(offset), self._places[key[1]][1])
            counters.addresses[place] = address
        memory = self._places[key[1]][0]
        made = counters.operands[key] = _placed(of, memory, address, quant)
        self._forms.append(of)  # so that its id stays its own
        return made


def _placed(of: Operand, memory: str, address: Term, quant: Quant | None) -> Operand:
    if of.compression is None:
        return Operand(memory, address, of.elem, of.dims, of.strides, quant)
    return replace(of, memory=memory, address=address, quant=quant)

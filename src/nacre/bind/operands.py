"""Operands of tasks at physical addresses."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from msgspec.structs import replace

from nacre.base.terms import Term
from nacre.bind.counters import Counters, OperandKey, add_number
from nacre.bind.forms import QuantBinder, TaskForm, region_of
from nacre.nem.model.program import Operand as TaskOperand
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
        self._quants, self._known_quants = quants, quants.known
        self._places = {index: (p.memory, p.address) for index, p in placements.items()}
        self._forms: list[Operand] = []
        self._streamed = streamed  # operands of tasks whose values are never written, by id

    def place(self, task: Task, form: TaskForm, counters: Counters) -> tuple[Operands, Operands]:
        """The operands that a task reads and those that it writes, as its form has them."""
        typed = form.operands
        if typed is None:
            known = counters.regions
            made = [
                known.get(id(operand.region)) or self._place_region(operand.region, counters)
                for operand in task.operands
            ]
            if self._streamed:
                made = self._stream(task.operands, made)
        elif self._streamed or form.is_compressed:
            return self._place_any(task, typed, form, counters)
        else:
            made = self._place_typed(task, typed, form, counters)
        reads, last = form.reads, made.pop()
        if reads == len(made):  # which is most of them
            return tuple(made), (last,)
        if reads < 0:
            return (last,), tuple(made)
        return tuple(made[:reads]), (*made[reads:], last)

    def _place_region(self, region: Any, counters: Counters) -> Operand:  # noqa: ANN401 - see below
        """An operand of the type of its region: all tasks that use it have the same.

        Regions of a program without errors have all that a region may lack.
        """
        offset, index, asked, dims = region.offset, region.buffer.index, region.quant, region.shape
        memory, first = self._places[index]
        is_number = type(offset) is int
        address = first + offset if is_number else self._address(offset, index, counters)
        quant: Quant | None = None
        if asked is not None:
            quant = self._known_quants.get(id(asked)) or self._quants.make(asked, len(dims))
        made = Operand(memory, address, region.elem, dims, region.strides, quant)
        counters.regions[id(region)] = made
        return made

    def _stream(self, operands: tuple[TaskOperand, ...], placed: list[Operand]) -> list[Operand]:
        """Operands with those as streams whose values are never written."""
        return [
            replace(made, memory=STREAM, address=0) if id(operand) in self._streamed else made
            for operand, made in zip(operands, placed, strict=True)
        ]

    def _place_typed(
        self, task: Task, typed: Operands, form: TaskForm, counters: Counters
    ) -> list[Operand]:
        """Operands whose types are those of a form."""
        places, takes_quants, quants = self._places, form.takes_quants, self._quants
        made: list[Operand] = []
        for operand, of in zip(task.operands, typed, strict=True):
            region = operand.region
            if region is None or (buffer := region.buffer) is None:
                raise ValueError("a region of a program with errors")
            quant = of.quant
            if takes_quants and (asked := region.quant) is not None:
                quant = quants.known.get(id(asked)) or quants.make(asked, len(of.dims))
            offset = region.offset
            if type(offset) is int:
                memory, first = places[buffer.index]
                made.append(Operand(memory, first + offset, of.elem, of.dims, of.strides, quant))
                continue
            key = (id(offset), buffer.index, id(of), id(quant))
            known = counters.operands.get(key)
            made.append(known or self._at_term(key, of, offset, quant, counters))
        return made

    def _place_any(
        self, task: Task, typed: Operands, form: TaskForm, counters: Counters
    ) -> tuple[Operands, Operands]:
        """The same of a task of which something is compressed or streams."""
        read: list[Operand] = []
        written: list[Operand] = []
        for operand, of in zip(task.operands, typed, strict=True):
            made = self._place_one(operand, of, form, counters)
            (read if operand.access == "read" else written).append(made)
        return tuple(read), tuple(written)

    def _place_one(
        self, operand: TaskOperand, of: Operand, form: TaskForm, counters: Counters
    ) -> Operand:
        region = region_of(operand)
        offset, quant, buffer = region.offset, of.quant, region.buffer
        if buffer is None:
            raise ValueError("a region of a program with errors")
        if form.takes_quants and (asked := region.quant) is not None:
            quant = self._quants.known.get(id(asked)) or self._quants.make(asked, len(of.dims))
        if id(operand) in self._streamed:
            return replace(of, memory=STREAM, quant=quant, compressed_bytes=None)
        if type(offset) is int:
            memory, first = self._places[buffer.index]
            return _placed(of, memory, first + offset, quant)
        # Equal terms of a program are one value, mostly.
        key = (id(offset), buffer.index, id(of), id(quant))
        return counters.operands.get(key) or self._at_term(key, of, offset, quant, counters)

    def _at_term(
        self, key: OperandKey, of: Operand, offset: object, quant: Quant | None, counters: Counters
    ) -> Operand:
        """An operand that lies elsewhere in every iteration."""
        memory, address = self._places[key[1]][0], self._address(offset, key[1], counters)
        made = counters.operands[key] = _placed(of, memory, address, quant)
        self._forms.append(of)  # so that its id stays its own
        return made

    def _address(self, offset: object, buffer: int, counters: Counters) -> Term:
        """Where something lies that is elsewhere in every iteration."""
        key = (id(offset), buffer)
        address = counters.addresses.get(key)
        if address is None:
            address = add_number(counters.term(offset), self._places[buffer][1])
            counters.addresses[key] = address
        return address


def _placed(of: Operand, memory: str, address: Term, quant: Quant | None) -> Operand:
    if of.compression is None:
        return Operand(memory, address, of.elem, of.dims, of.strides, quant)
    return replace(of, memory=memory, address=address, quant=quant)

"""Operands of tasks at physical addresses."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from nacre.base.terms import Term
from nacre.bind.counters import Counters, add
from nacre.bind.forms import TaskForm, region_of
from nacre.nem.model.program import Operand as TaskOperand
from nacre.nem.model.program import Region, Task
from nacre.tcb.image import STREAM, Operand, Placement

Operands = tuple[Operand, ...]


class OperandBinder:
    """Puts operands into their places; `placements` are those of buffers, by their index.

    A region has one address, whoever uses it: its loops are around all of them.
    """

    def __init__(self, placements: Mapping[int, Placement], streamed: Collection[int] = ()) -> None:
        self._placements = placements
        self._streamed = streamed  # operands of tasks whose values are never written, by id
        self._addresses: dict[int, Term] = {}  # by id of the region
        # By ids of region and form, which is kept so that its id stays its own.
        self._placed: dict[tuple[int, int], tuple[Operand, Operand]] = {}

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
        if id(operand) in self._streamed:
            return Operand(
                STREAM, 0, form.elem, form.dims, form.strides, form.quant, form.compression
            )
        region = region_of(operand)
        key = (id(region), id(form))
        found = self._placed.get(key)
        if found is None:
            found = self._placed[key] = (form, self._place_region(region, form, counters))
        return found[1]

    def _place_region(self, region: Region, form: Operand, counters: Counters) -> Operand:
        if region.buffer is None:
            raise ValueError("a region of a program with errors")
        placement = self._placements[region.buffer.index]
        address = self._addresses.get(id(region))
        if address is None:
            address = add(counters.term(region.offset), placement.address)
            self._addresses[id(region)] = address
        return Operand(
            placement.memory,
            address,
            form.elem,
            form.dims,
            form.strides,
            form.quant,
            form.compression,
            form.compressed_bytes,
        )

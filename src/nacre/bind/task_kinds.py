"""Kinds of tasks: those of one kind differ in where their operands begin, and on which engine.

Tiles of a layer are of one kind, so whatever follows from types, levels and attributes is worked
out once for all of them.
"""

from __future__ import annotations

from collections.abc import Hashable

from nacre.nem.model.program import Region, Task, UnitIndex
from nacre.nem.plan.placement import requested_unit
from nacre.nem.run.machine.machine import must_be_deterministic

COPIES = ("transfer", "store")


class TaskKinds:
    """The kinds of a program's tasks, as numbers."""

    def __init__(self) -> None:
        self.requested: dict[int, UnitIndex] = {}  # what `@resource` asks for, by position
        self._kinds: dict[Hashable, int] = {}
        self._types: dict[Hashable, int] = {}
        self._type_of: dict[int, int] = {}  # by id of the region
        self._quants: dict[Hashable, int] = {}
        self._quant_of: dict[int, int] = {}  # by id: long ones are looked at once
        self._kind_of: dict[int, int] = {}  # by position of the task

    def of(self, task: Task) -> int:
        """The kind of a task."""
        kind = self._kind_of.get(task.position)
        if kind is None:
            kind = self._kind_of[task.position] = self._kind(task)
        return kind

    def _kind(self, task: Task) -> int:
        asked = requested_unit(task) if task.decorators else None
        if asked is not None:
            self.requested[task.position] = asked
        is_copy = task.op in COPIES
        parts: list[Hashable] = [task.op, must_be_deterministic(task)]
        if asked is not None:
            parts.append(asked.unit)
        for operand in task.operands:
            region = operand.region
            if region is None:  # of a program with errors
                continue
            found = self._type_of.get(id(region))
            parts.append(self._type(region) if found is None else found)
            parts.append(operand.access)
            if is_copy or region.compression is not None:
                parts.append(region.extent)
        if task.attributes:
            parts += task.attributes.items()
        return self._kinds.setdefault(tuple(parts), len(self._kinds))

    def _type(self, region: Region) -> int:
        """The type of a region and the level that it lies in, as a number."""
        level = None if region.buffer is None else region.buffer.level
        compression = None if region.compression is None else region.compression.form
        quant = None if region.quant is None else self._quant(region.quant)
        key = (level, region.elem, region.shape, region.strides, quant, compression)
        number = self._types.setdefault(key, len(self._types))
        self._type_of[id(region)] = number
        return number

    def _quant(self, quant: Hashable) -> int:
        number = self._quant_of.get(id(quant))
        if number is None:
            number = self._quants.setdefault(quant, len(self._quants))
            self._quant_of[id(quant)] = number
        return number

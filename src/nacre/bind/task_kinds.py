"""Kinds of tasks: those of one kind differ in where their operands begin, and on which engine.

Tiles of a layer are of one kind, so whatever follows from types, levels and attributes is worked
out once for all of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from nacre.nem.model.program import Task, UnitIndex
from nacre.nem.plan.calls import Symbolic, symbolic_terms, varying_parts
from nacre.nem.plan.placement import requested_unit
from nacre.nem.run.machine.machine import must_be_deterministic

COPIES = ("transfer", "store")


class TaskKinds:
    """The kinds of a program's tasks, as numbers."""

    def __init__(self) -> None:
        self.requested: dict[int, UnitIndex] = {}  # what `@resource` asks for, by position
        self.varying: list[tuple[Symbolic, ...]] = []  # by kind: terms that no block can say
        self._kinds: dict[Hashable, int] = {}
        self._quants: dict[Hashable, int] = {}
        self._quant_of: dict[int, int] = {}  # by id: long ones are looked at once
        self.numbers: dict[int, int] = {}  # of tasks that were looked at, by position
        self._deterministic_loops: dict[int, bool] = {}  # by position

    def of(self, task: Task) -> int:
        """The kind of a task."""
        kind = self.numbers.get(task.position)
        if kind is None:
            kind = self.numbers[task.position] = self._kind(task)
        return kind

    def _kind(self, task: Task) -> int:
        parts: list[Hashable] = [task.op, self._is_deterministic(task)]
        asked = requested_unit(task) if task.decorators else None
        if asked is not None:
            self.requested[task.position] = asked
            parts.append(asked.unit)
        is_copy = task.op in COPIES
        for operand in task.operands:
            region = operand.region
            if region is None:  # of a program with errors
                continue
            buffer, quant, packed = region.buffer, region.quant, region.compression
            level = None if buffer is None else buffer.level
            parts += (operand.access, level, region.elem, region.shape, region.strides)
            if quant is not None:
                parts += ("quant", self._quant(quant))
            if packed is not None:
                parts += ("packed", packed.form)
            if is_copy or packed is not None:
                parts.append(region.extent)
        if task.attributes:
            parts += task.attributes.items()
        kind = self._kinds.setdefault(tuple(parts), len(self._kinds))
        if kind == len(self.varying):
            self.varying.append(tuple(_varying_terms(task)))
        return kind

    def _is_deterministic(self, task: Task) -> bool:
        """Whether it must be, by what it says itself or what its loops do."""
        for decorator in task.decorators:
            if decorator.name == "deterministic":
                return True
        if not task.loops:
            return False
        innermost = task.loops[-1].position
        found = self._deterministic_loops.get(innermost)
        if found is None:
            found = self._deterministic_loops[innermost] = must_be_deterministic(task)
        return found

    def _quant(self, quant: Hashable) -> int:
        number = self._quant_of.get(id(quant))
        if number is None:
            number = self._quants.setdefault(quant, len(self._quants))
            self._quant_of[id(quant)] = number
        return number


def _varying_terms(task: Task) -> Iterator[Symbolic]:
    """The terms over loops in shapes and attributes; of a copy also in how many bytes it moves."""
    parts = varying_parts(task)
    if task.op in COPIES:
        parts += tuple(o.region.extent for o in task.operands if o.region is not None)
    return symbolic_terms(parts)

"""Kinds of tasks: those of one kind differ in where their operands begin, and on which engine.

Tiles of a layer are of one kind, so whatever follows from types, levels and attributes is worked
out once for all of them.
"""

from __future__ import annotations

from collections.abc import Hashable

from nacre.nem.model.program import Quant, Region, Task, UnitIndex
from nacre.nem.plan.calls import Symbolic, symbolic_terms
from nacre.nem.plan.placement import requested_unit
from nacre.nem.run.machine.machine import must_be_deterministic

COPIES = ("transfer", "store")
FEW_SCALES = 4  # of quantisations that are compared


def asks_for_anything(task: Task) -> bool:
    """Whether decorators on a task say more than what tools call it, which is all that most say."""
    found = task.decorators
    return bool(found) and (len(found) > 1 or found[0].name != "debug")


class TaskKinds:
    """The kinds of a program's tasks, as numbers."""

    def __init__(self) -> None:
        self.requested: dict[int, UnitIndex] = {}  # what `@resource` asks for, by position
        self.varying: list[tuple[Symbolic, ...]] = []  # by kind: terms that no block can say
        self.costs: list[int] = []  # by kind: kinds of one number cost the same
        self.numbers: dict[int, int] = {}  # of tasks that were looked at, by position
        self._kinds: dict[Hashable, int] = {}
        self._costs: dict[Hashable, int] = {}
        self._terms: dict[int, tuple[Symbolic, ...]] = {}  # but for those in `quant`, by cost
        self._quants: dict[Hashable, int] = {}
        self._quant_of: dict[int, int] = {}  # by id: long ones are looked at once
        self._quant_terms: dict[int, tuple[Symbolic, ...]] = {}  # by number
        self._deterministic_loops: dict[int, bool] = {}  # by position

    def of(self, task: Task) -> int:
        """The kind of a task."""
        kind = self.numbers.get(task.position)
        if kind is None:
            kind = self.numbers[task.position] = self._kind(task)
        return kind

    def _kind(self, task: Task) -> int:
        parts: list[Hashable] = [task.op, self._is_deterministic(task)]
        asked = requested_unit(task) if asks_for_anything(task) else None
        if asked is not None:
            self.requested[task.position] = asked
            parts.append(asked.unit)
        is_copy = task.op in COPIES
        quants: list[Hashable] = []  # on which it does not depend what computing costs
        for operand in task.operands:
            region = operand.region
            if region is None:  # of a program with errors
                continue
            buffer, quant, packed = region.buffer, region.quant, region.compression
            level = None if buffer is None else buffer.level
            parts += (operand.access, level, region.elem, region.shape, region.strides)
            if quant is not None:
                number = self._quant_of.get(id(quant))
                quants.append(self.quant_number(quant) if number is None else number)
            else:
                quants.append(None)
            if packed is not None:
                parts += ("packed", packed.form)
            if is_copy or packed is not None:
                parts.append(region.extent)
        if is_copy:
            parts += quants
        elif task.attributes:
            parts += task.attributes
            parts += task.attributes.values()
            if task.op == "compute":  # an operation by name tells 1 from 1.0
                parts += map(type, task.attributes.values())
        cost = self._costs.setdefault(tuple(parts), len(self._costs))
        kind = self._kinds.setdefault((cost, *quants), len(self._kinds))
        if kind == len(self.varying):
            self.costs.append(cost)
            self.varying.append(self._varying_terms(task, cost) if task.loops else ())
        return kind

    def _varying_terms(self, task: Task, cost: int) -> tuple[Symbolic, ...]:
        """The terms over loops in shapes and attributes; of a copy also in the bytes it moves."""
        found = self._terms.get(cost)
        if found is None:
            regions = [o.region for o in task.operands if o.region is not None]
            parts = (*task.attributes.values(), *((r.shape, r.strides) for r in regions))
            if task.op in COPIES:
                parts += tuple(region.extent for region in regions)
            found = self._terms[cost] = tuple(symbolic_terms(parts))
        for operand in task.operands:
            if operand.region is not None and operand.region.quant is not None:
                found += self._terms_in(operand.region)
        return found

    def _terms_in(self, region: Region) -> tuple[Symbolic, ...]:
        """The terms in the quantisation of a region: none where no loop is around it."""
        quant = region.quant
        if quant is None or not region.loops:
            return ()
        number = self.quant_number(quant)
        found = self._quant_terms.get(number)
        if found is None:
            found = self._quant_terms[number] = tuple(symbolic_terms(quant))
        return found

    def _is_deterministic(self, task: Task) -> bool:
        """Whether it must be, by what it says itself or what its loops do."""
        if asks_for_anything(task) and task.decorator("deterministic") is not None:
            return True
        if not task.loops:
            return False
        innermost = task.loops[-1].position
        found = self._deterministic_loops.get(innermost)
        if found is None:
            found = self._deterministic_loops[innermost] = must_be_deterministic(task)
        return found

    def quant_number(self, quant: Quant) -> int:
        """The number of a quantisation; equal ones have one, but for long ones of their own."""
        number = self._quant_of.get(id(quant))
        if number is None:
            is_short = quant.scales is None or len(quant.scales) <= FEW_SCALES
            key = quant if is_short else id(quant)
            number = self._quants.setdefault(key, len(self._quants))
            self._quant_of[id(quant)] = number
        return number

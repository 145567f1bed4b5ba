"""Kinds of tasks: those of one kind differ in where their operands begin, and on which engine.

Tiles of a layer are of one kind, so whatever follows from types, levels and attributes is worked
out once for all of them.
"""

from __future__ import annotations

from collections.abc import Hashable

from nacre.nem.model.program import Loop, Quant, Region, Task, UnitIndex
from nacre.nem.plan.calls import Symbolic, symbolic_terms
from nacre.nem.plan.placement import requested_unit

COPIES = ("transfer", "store")
FEW_SCALES = 4  # of quantisations that are compared
_NUMBERS = frozenset({int, float, str, bool})
_QUANTS = object()  # behind it in a key stand the numbers of quantisations


class TaskKinds:
    """The kinds of a program's tasks, as numbers."""

    def __init__(self) -> None:
        self.asking: set[int] = set()  # positions of tasks whose decorators ask for anything
        self.requested: dict[int, UnitIndex] = {}  # what `@resource` asks for, by position
        self.varying: list[tuple[Symbolic, ...]] = []  # by kind: terms that no block can say
        self.costs: list[int] = []  # by kind: kinds of one number cost the same
        self.numbers: dict[int, int] = {}  # of tasks that were looked at, by position
        self._kinds: dict[Hashable, int] = {}
        self._costs: dict[Hashable, int] = {}
        self._terms: dict[int, tuple[Symbolic, ...]] = {}  # but for those in `quant`, by cost
        self._quants: dict[Hashable, int] = {}
        self._quant_of: dict[int, int] = {}  # by id: long ones are looked at once
        self._quant_terms: dict[int, tuple[Symbolic, ...]] = {}  # by id
        self._deterministic_loops: dict[int, bool] = {}  # by position

    def of(self, task: Task) -> int:
        """The kind of a task."""
        kind = self.numbers.get(task.position)
        if kind is not None:
            return kind
        op, loops = task.op, task.loops
        parts: list[Hashable] = [op, bool(loops) and self._is_deterministic_in(loops)]
        decorators = task.decorators
        if decorators and (len(decorators) > 1 or decorators[0].name != "debug"):
            self._add_requests(task, parts)  # more than what tools call it, which is all of most
        is_copy, quant_of = op in COPIES, self._quant_of
        quants: list[Hashable] = []  # where, and which
        for operand in task.operands:
            region = operand.region
            if region is None or region.buffer is None:  # of a program with errors
                continue
            quant, packed = region.quant, region.compression
            level = region.buffer.level
            parts += (operand.access, level, region.elem, region.shape, region.strides)
            if quant is not None:
                number = quant_of.get(id(quant))
                quants += (len(parts), self.quant_number(quant) if number is None else number)
            if packed is not None:
                parts += ("packed", packed.form, region.extent)
            elif is_copy:
                parts.append(region.extent)
        if not is_copy and task.attributes:
            _add_attributes(task, parts)
        key = (*parts, _QUANTS, *quants) if quants else tuple(parts)
        kind = self._kinds.get(key)
        if kind is None:
            # What computing costs does not depend on quantisation, what copying costs does.
            kind = self._add_kind(task, key, key if is_copy else tuple(parts))
        self.numbers[task.position] = kind
        return kind

    def _add_kind(self, task: Task, key: Hashable, cost_key: Hashable) -> int:
        cost = self._costs.setdefault(cost_key, len(self._costs))
        kind = self._kinds[key] = len(self._kinds)
        self.costs.append(cost)
        self.varying.append(self._varying_terms(task, cost) if task.loops else ())
        return kind

    def _add_requests(self, task: Task, parts: list[Hashable]) -> None:
        """What decorators on a task ask for."""
        self.asking.add(task.position)
        if task.decorator("deterministic") is not None:
            parts[1] = True
        asked = requested_unit(task)
        if asked is not None:
            self.requested[task.position] = asked
            parts.append(asked.unit)

    def _varying_terms(self, task: Task, cost: int) -> tuple[Symbolic, ...]:
        """The terms over loops in shapes and attributes; of a copy also in the bytes it moves."""
        found = self._terms.get(cost)
        if found is None:
            found = self._terms[cost] = _terms_but_quant(task)
        for operand in task.operands:
            if operand.region is not None and operand.region.quant is not None:
                found += self._terms_in(operand.region)
        return found

    def _terms_in(self, region: Region) -> tuple[Symbolic, ...]:
        """The terms in the quantisation of a region: none where no loop is around it."""
        quant = region.quant
        if quant is None or not region.loops:
            return ()
        found = self._quant_terms.get(id(quant))
        if found is None:
            parts = (*(quant.scales or ()), *(quant.zero_points or ()))
            is_plain = _NUMBERS.issuperset(map(type, parts))
            found = self._quant_terms[id(quant)] = () if is_plain else tuple(symbolic_terms(quant))
        return found

    def _is_deterministic_in(self, loops: tuple[Loop, ...]) -> bool:
        """Whether one of some loops inside each other says that all in it is."""
        innermost = loops[-1].position
        found = self._deterministic_loops.get(innermost)
        if found is None:
            says = (d.name == "deterministic" for loop in loops for d in loop.decorators)
            found = self._deterministic_loops[innermost] = any(says)
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


def _add_attributes(task: Task, parts: list[Hashable]) -> None:
    values = task.attributes.values()
    parts += task.attributes
    parts += values
    if task.op == "compute":  # an operation by name tells 1 from 1.0
        parts += map(type, values)


def _terms_but_quant(task: Task) -> tuple[Symbolic, ...]:
    """The terms over loops in the attributes of a task, and in shapes and strides of its operands.

    Of a copy also those in how many bytes it moves.
    """
    parts: list[object] = []
    for value in task.attributes.values():
        parts += value if type(value) is tuple else (value,)
    for operand in task.operands:
        region = operand.region
        if region is not None:
            parts += region.shape or ()
            parts += region.strides or ()
            if task.op in COPIES:
                parts.append(region.extent)
    if _NUMBERS.issuperset(map(type, parts)):  # which is most of them
        return ()
    return tuple(symbolic_terms(tuple(parts)))

"""Kinds of tasks: those of one kind differ in where their operands begin, and on which engine.

Tiles of a layer are of one kind, so whatever follows from types, levels and attributes is worked
out once for all of them. Compute tasks of one kind may also differ in the quantisation of their
operands, of which there is one a tensor, where it is the same in every iteration.
"""

from __future__ import annotations

from collections.abc import Hashable

from nacre.nem.model.program import Loop, Region, Task, UnitIndex
from nacre.nem.plan.calls import Symbolic, symbolic_terms
from nacre.nem.plan.footprints import copies_elements
from nacre.nem.plan.placement import requested_unit

COPIES = ("transfer", "store")
_NUMBERS = frozenset({int, float, str, bool})


class TaskKinds:
    """The kinds of a program's tasks, as numbers."""

    def __init__(self) -> None:
        self.asking: set[int] = set()  # positions of tasks whose decorators ask for anything
        self.requested: dict[int, UnitIndex] = {}  # what `@resource` asks for, by position
        self.varying: list[tuple[Symbolic, ...]] = []  # by kind: terms that no block can say
        self.keys: list[Hashable] = []  # by kind: equal ones are one kind, in other programs too
        self.numbers: dict[int, int] = {}  # of tasks that were looked at, by position
        self._kinds: dict[Hashable, int] = {}
        self._quant_terms: dict[int, tuple[Symbolic, ...]] = {}  # by id
        self._deterministic: list[bool] = []  # by kind
        self._deterministic_loops: dict[int, bool] = {}  # by position

    def of(self, task: Task) -> int:
        """The kind of a task."""
        kind = self.numbers.get(task.position)
        if kind is not None:
            return kind
        op, loops, decorators = task.op, task.loops, task.decorators
        parts: list[Hashable] = [op, bool(loops) and self._is_deterministic_in(loops)]
        if decorators and (len(decorators) > 1 or decorators[0].name != "debug"):
            self._add_requests(task, parts)  # more than what tools call it, which is all of most
        if op in COPIES:
            self._add_copy(task, parts)
        else:
            _add_types(task, parts)
            if loops:
                self._add_varying_quants(task, parts)
            if task.attributes:
                _add_attributes(task, parts)
        key = tuple(parts)
        count = len(self.keys)
        kind = self._kinds.setdefault(key, count)  # hashed once
        if kind == count:
            self.keys.append(key)
            self._deterministic.append(bool(parts[1]))
            self.varying.append(self._varying_terms(task) if loops else ())
        self.numbers[task.position] = kind
        return kind

    def is_deterministic(self, task: Task) -> bool:
        """Whether floats of a task whose kind is known are added up in a fixed order."""
        return self._deterministic[self.numbers[task.position]]

    def _add_copy(self, task: Task, parts: list[Hashable]) -> None:
        """What a copy moves; types of bytes matter only where runs of iterations differ in them."""
        copied = None if task.loops else _copied_bytes(task)
        if copied is not None:
            parts += copied
            return
        _add_types(task, parts)
        for operand in task.operands:
            region = operand.region
            if region is not None and region.buffer is not None:
                parts += (region.quant, region.extent)

    def _add_varying_quants(self, task: Task, parts: list[Hashable]) -> None:
        """Quantisation that differs from iteration to iteration."""
        for at, operand in enumerate(task.operands):
            region = operand.region
            if region is None or region.quant is None or region.buffer is None:
                continue
            if self._terms_in(region):
                parts += (at, region.quant)

    def _add_requests(self, task: Task, parts: list[Hashable]) -> None:
        """What decorators on a task ask for."""
        self.asking.add(task.position)
        if task.decorator("deterministic") is not None:
            parts[1] = True
        asked = requested_unit(task)
        if asked is not None:
            self.requested[task.position] = asked
            parts.append(asked.unit)

    def _varying_terms(self, task: Task) -> tuple[Symbolic, ...]:
        """The terms over loops in shapes and attributes; of a copy also in the bytes it moves."""
        found = _terms_but_quant(task)
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
            names = [d.name for loop in loops for d in loop.decorators]
            found = self._deterministic_loops[innermost] = "deterministic" in names
        return found


def _add_types(task: Task, parts: list[Hashable]) -> None:
    """The types of operands, and the levels that they lie in."""
    for operand in task.operands:
        region = operand.region
        if region is None or (buffer := region.buffer) is None:  # of a program with errors
            continue
        parts += (operand.access, buffer.level, region.elem, region.shape, region.strides)
        if region.compression is not None:
            parts += ("packed", region.compression.form, region.extent)


def _copied_bytes(task: Task) -> tuple[Hashable, ...] | None:
    """Between which memories a copy of bytes as they are goes, and how many; None for others."""
    if len(task.operands) != 2:
        return None
    first, second = task.operands
    a, b = first.region, second.region
    if a is None or b is None or a.buffer is None or b.buffer is None:
        return None
    if a.compression is not None or b.compression is not None:
        return None
    if (a.strides or b.strides or a.quant or b.quant) and copies_elements(task):
        return None
    size = a.extent if first.access == "read" else b.extent
    return "bytes", first.access, a.buffer.level, b.buffer.level, size


def _add_attributes(task: Task, parts: list[Hashable]) -> None:
    """Names, values and types: 1, 1.0 and true are equal and not the same."""
    attributes = task.attributes
    values = attributes.values()
    parts += attributes
    parts += values
    parts += map(type, values)
    if task.op == "compute":  # an operation by name tells them apart in lists, too
        parts += [tuple(map(type, value)) for value in values if type(value) is tuple]


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

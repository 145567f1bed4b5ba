"""Kinds of tasks: those of one kind differ in where their operands begin, and on which engine.

Tiles of a layer are of one kind, so whatever follows from types, levels and attributes is worked
out once for all of them. Compute tasks of one kind may also differ in the quantisation of their
operands, of which there is one a tensor, where it is the same in every iteration.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from nacre.nem.model.program import Loop, Quant, Region, Task, UnitIndex
from nacre.nem.plan.calls import Symbolic, symbolic_terms
from nacre.nem.plan.footprints import copies_elements
from nacre.nem.plan.placement import requested_unit, table_level
from nacre.nem.syntax.ast import Copy

COPIES = ("transfer", "store")
_BYTES = "bytes"  # in the key of a copy of bytes as they are
_NUMBERS = frozenset({int, float, str, bool})


class TaskKinds:
    """The kinds of a program's tasks, as numbers."""

    def __init__(self) -> None:
        self.asking: set[int] = set()  # positions of tasks whose decorators ask for anything
        self.requested: dict[int, UnitIndex] = {}  # what `@resource` asks for, by position
        self.varying: list[tuple[Symbolic, ...]] = []  # by kind: terms that no block can say
        self.keys: list[
            tuple[Hashable, ...]
        ] = []  # by kind: equal ones are one kind, in other programs too
        self.first: list[Task] = []  # by kind: the first task of it
        self.numbers: dict[int, int] = {}  # of tasks that were looked at, by position
        self._kinds: dict[tuple[Hashable, ...], int] = {}
        self._plain_quants: set[int] = set()  # ids of those that no loop makes others
        self.copied: list[int | None] = []  # by kind: bytes that are copied as they are
        self._deterministic: list[bool] = []  # by kind
        self._deterministic_loops: dict[int, bool] = {}  # by position

    def look_at(self, tasks: Iterable[Task]) -> None:
        """Find out the kinds of tasks."""
        kinds, numbers, keys = self._kinds, self.numbers, self.keys
        is_ordered, asked = False, None
        for task in tasks:
            loops, decorators, node = task.loops, task.decorators, task.node
            is_ordered = self._is_deterministic_in(loops) if loops else False
            asked = None
            if decorators and (decorators[0].name != "debug" or len(decorators) > 1):
                # More than what tools call it, which is all of most.
                is_ordered, asked = self._requests(task, is_ordered=is_ordered)
            key: tuple[Hashable, ...]
            if isinstance(node, Copy):
                moved = _copied_bytes(task) or _copied_types(task)
                key = (task.op, is_ordered, asked, *moved)
            else:
                key = (task.op, is_ordered, asked, len(node.inputs), *_types(task.operands))
                if loops:
                    key += self._varying_quants(task)
                if attributes := task.attributes:
                    # 1, 1.0 and true are equal and not the same.
                    values = attributes.values()
                    key = (*key, *attributes, *values, *map(type, values))
                    if task.op == "compute":  # which tells them apart in lists, too
                        key += _types_of_parts(values)
            count = len(keys)
            kind = kinds.setdefault(key, count)  # hashed once
            if kind == count:
                self._add(task, key)
            numbers[task.position] = kind

    def _add(self, task: Task, key: tuple[Hashable, ...]) -> None:
        """A kind that is new."""
        size = key[-1] if key[3] == _BYTES else None
        self.keys.append(key)
        self.first.append(task)
        self.copied.append(size if type(size) is int else None)
        self._deterministic.append(bool(key[1]))
        is_even = not task.loops or key[3] == _BYTES
        self.varying.append(() if is_even else self._varying_terms(task))

    def way(self, kind: int) -> Hashable:
        """What the units of tasks of a kind follow from; None: from more than is said here."""
        key, task = self.keys[kind], self.first[kind]
        if key[3] == _BYTES:
            return key[:-1]  # in any size
        return None if task.op in COPIES or table_level(task) is not None else task.op

    def is_deterministic(self, task: Task) -> bool:
        """Whether floats of a task whose kind is known are added up in a fixed order."""
        return self._deterministic[self.numbers[task.position]]

    def _varying_quants(self, task: Task) -> tuple[Hashable, ...]:
        """Quantisation that differs from iteration to iteration."""
        operands: Any = task.operands
        plain, found = self._plain_quants, list[Hashable]()
        for at, operand in enumerate(operands):
            region = operand.region
            quant = region.quant if region.loops else None
            if quant is not None and id(quant) not in plain and self._terms_in(quant):
                found += (at, quant)
        return tuple(found)

    def _requests(self, task: Task, *, is_ordered: bool) -> tuple[bool, str | None]:
        """What decorators on a task ask for: an order of its sums, and a unit."""
        self.asking.add(task.position)
        if task.decorator("deterministic") is not None:
            is_ordered = True
        asked = requested_unit(task)
        if asked is None:
            return is_ordered, None
        self.requested[task.position] = asked
        return is_ordered, asked.unit

    def _varying_terms(self, task: Task) -> tuple[Symbolic, ...]:
        """The terms over loops in shapes and attributes; of a copy also in the bytes it moves."""
        found = _terms_but_quant(task)
        for operand in task.operands:
            region = operand.region
            if region is not None and region.loops and region.quant is not None:
                found += self._terms_in(region.quant)
        return found

    def _terms_in(self, quant: Quant) -> tuple[Symbolic, ...]:
        """The terms in a quantisation inside of loops."""
        if id(quant) in self._plain_quants:
            return ()
        parts = (*(quant.scales or ()), *(quant.zero_points or ()))
        if _NUMBERS.issuperset(map(type, parts)):
            self._plain_quants.add(id(quant))
            return ()
        return tuple(symbolic_terms(quant))

    def _is_deterministic_in(self, loops: tuple[Loop, ...]) -> bool:
        """Whether one of some loops inside each other says that all in it is."""
        innermost = loops[-1].position
        found = self._deterministic_loops.get(innermost)
        if found is None:
            names = [d.name for loop in loops for d in loop.decorators]
            found = self._deterministic_loops[innermost] = "deterministic" in names
        return found


def _types(operands: Any) -> list[Hashable]:  # noqa: ANN401 - those without errors have regions
    """The types of operands, and the levels that they lie in."""
    return [
        (
            (r := operand.region).buffer.level, r.elem, r.shape, r.strides,
            r.compression and (r.compression.form, r.extent),
        )
        for operand in operands
    ]  # fmt: skip


def _copied_types(task: Task) -> tuple[Hashable, ...]:
    """What a copy moves; types of bytes matter only where runs of iterations differ in them."""
    parts: list[Hashable] = []
    for operand, of_type in zip(task.operands, _types(task.operands), strict=True):
        region = operand.region
        if region is not None:
            parts += (operand.access, of_type, region.quant, region.extent)
    return tuple(parts)


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
    if task.loops and not (_is_even(a) and _is_even(b)):
        return None
    size = a.extent if first.access == "read" else b.extent
    return _BYTES, first.access, a.buffer.level, b.buffer.level, size


def _is_even(region: Region) -> bool:
    """Whether a region has one extent and shape in all iterations."""
    parts = (region.extent, *(region.shape or ()), *(region.strides or ()))
    return _NUMBERS.issuperset(map(type, parts))


def _types_of_parts(values: Iterable[object]) -> tuple[Hashable, ...]:
    """The types of what stands in lists among values."""
    return tuple([tuple(map(type, value)) for value in values if type(value) is tuple])


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

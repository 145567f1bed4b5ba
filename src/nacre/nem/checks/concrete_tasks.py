"""Tasks with all their integers known: shapes and attributes, iteration by iteration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from weakref import WeakKeyDictionary

import numpy as np
from msgspec import Struct

from nacre.base.term_columns import Column, TermProblem
from nacre.base.terms import Term
from nacre.kernels.interface.shapes import Dims
from nacre.nem.checks.attributes import attribute_value
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.tasks import has_its_operands
from nacre.nem.checks.wording import in_iteration
from nacre.nem.model.folding import Folded
from nacre.nem.model.program import Loop, Task
from nacre.nem.plan.columns import as_term, value_at
from nacre.nem.plan.grid import Grid
from nacre.nem.plan.plan import Plan
from nacre.nem.spec.opcodes import Opcode


class ConcreteTask(Struct, frozen=True):
    """A task's shapes and integer attributes in one iteration."""

    task: Task
    opcode: Opcode
    shapes: tuple[Dims, ...]  # by operand
    values: Mapping[str, int | Dims]  # of attributes that hold integers
    iteration: str  # ` in iteration i=3`; empty where every iteration reads the same

    def shape(self, name: str) -> Dims | None:
        """The shape of the operand of that name; None where an optional one is left out."""
        return next(iter(self.shapes_of(name)), None)

    def shapes_of(self, name: str) -> list[Dims]:
        """The shapes of all operands of that name."""
        pairs = zip(self.task.operands, self.shapes, strict=True)
        return [dims for one, dims in pairs if one.spec is not None and one.spec.name == name]

    def number(self, name: str) -> int | None:
        """An integer attribute; None where it is missing or wrong."""
        value = self.values.get(name)
        return value if isinstance(value, int) else None

    def numbers(self, name: str) -> Dims | None:
        """An attribute that is a list of integers; None where it is missing or wrong."""
        value = self.values.get(name)
        return value if isinstance(value, tuple) else None


# Most tasks are the same in every iteration; several rules ask for that one.
_constant: WeakKeyDictionary[Plan, dict[int, ConcreteTask]] = WeakKeyDictionary()


def concrete_tasks(facts: ProgramFacts, task: Task, opcode: Opcode) -> Iterator[ConcreteTask]:
    """A task with every integer known, once for each distinct set of integers.

    They come in the order of the iterations that first have them. None at all where an operand
    is missing or a shape is not known; a dimension that is not positive has been reported, and
    iterations that have one are left out.
    """
    of_plan = _constant.setdefault(facts.plan, {})
    concrete = of_plan.get(task.position)
    if concrete is not None:
        yield concrete
        return
    for concrete in _evaluate_tasks(facts, task, opcode):
        if not concrete.iteration:
            of_plan[task.position] = concrete
        yield concrete


def _evaluate_tasks(facts: ProgramFacts, task: Task, opcode: Opcode) -> Iterator[ConcreteTask]:
    if not has_its_operands(task, opcode):
        return
    shapes = [
        known_dimensions(o.region.shape if o.region is not None else None) for o in task.operands
    ]
    sound = [shape for shape in shapes if shape]  # `[]` is no shape
    if len(sound) < len(shapes):
        return
    row = _TermRow(task, opcode, sound)
    for values, iteration in distinct_values(facts, task.loops, row.terms):
        concrete = row.concrete_task(values, iteration)
        if all(dim > 0 for dims in concrete.shapes for dim in dims):
            yield concrete


def known_dimensions(values: tuple[Folded, ...] | None) -> tuple[Term, ...] | None:
    """Dimensions as terms; None where one has no value, which has been reported."""
    if values is None:
        return None
    terms = tuple(term for value in values if (term := as_term(value)) is not None)
    return terms if len(terms) == len(values) else None


class _TermRow:
    """All integers of a task one after the other, and the way back to what they stand for."""

    def __init__(self, task: Task, opcode: Opcode, shapes: list[tuple[Term, ...]]) -> None:
        self._task, self._opcode = task, opcode
        self._ranks = [len(shape) for shape in shapes]
        self._lengths: list[tuple[str, int | None]] = []  # of attributes; None: a single integer
        self.terms: list[Term] = [term for shape in shapes for term in shape]
        for spec in opcode.attributes:
            value = attribute_value(task, spec) if spec.type in ("int", "int_list") else None
            items = value if isinstance(value, tuple) else (value,)
            terms = known_dimensions(items)
            if terms is not None:
                self.terms += terms
                self._lengths.append((spec.name, len(items) if value is items else None))

    def concrete_task(self, row: Dims, iteration: str) -> ConcreteTask:
        """What a row of values means."""
        shapes, at = [], 0
        for rank in self._ranks:
            shapes.append(row[at : at + rank])
            at += rank
        values: dict[str, int | Dims] = {}
        for name, length in self._lengths:
            values[name] = row[at] if length is None else row[at : at + length]
            at += 1 if length is None else length
        return ConcreteTask(self._task, self._opcode, tuple(shapes), values, iteration)


def distinct_values(
    facts: ProgramFacts, loops: tuple[Loop, ...], terms: list[Term]
) -> Iterator[tuple[Dims, str]]:
    """The distinct values that some terms have together, with words for the first iteration."""
    constant = tuple(term for term in terms if isinstance(term, int))
    if len(constant) == len(terms):
        yield constant, ""
        return
    grid = facts.plan.grid_of(loops)
    if grid is not None:
        yield from _distinct_rows(grid, terms)


def _distinct_rows(grid: Grid, terms: list[Term]) -> Iterator[tuple[Dims, str]]:
    try:
        columns = [grid.evaluate(term) for term in terms]
    except TermProblem:  # reported where the expression is checked
        return
    for row in _first_rows([column for column in columns if not isinstance(column, int)]):
        yield tuple(value_at(column, row) for column in columns), in_iteration(grid, row)


def _first_rows(columns: list[Column]) -> list[int]:
    """The rows that are unlike all rows before them."""
    table = columns[0] if len(columns) == 1 else np.stack(columns, axis=1)
    _, first = np.unique(table, axis=0, return_index=True)
    return sorted(int(row) for row in first)

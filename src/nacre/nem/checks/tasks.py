"""Compute tasks as the rules on signatures, types and quantisation see them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nacre.base.diagnostics import Related
from nacre.base.source import Span
from nacre.nem.checks.attributes import is_term, usable
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.shapes import Dims
from nacre.nem.model.folding import Folded, Term
from nacre.nem.model.program import Operand, Task
from nacre.nem.plan.grid import Grid
from nacre.nem.plan.terms import TermProblem
from nacre.nem.spec.opcodes import Category, Opcode
from nacre.nem.syntax import ast

Part = Literal["elem", "shape", "layout", "quant"]


def computes(facts: ProgramFacts, *categories: Category) -> Iterator[tuple[Task, Opcode]]:
    """The compute tasks whose opcode is known, of some categories or of all."""
    for task in facts.program.tasks():
        opcode = task.opcode
        if opcode is None or opcode.category == "data_movement":
            continue
        if not categories or opcode.category in categories:
            yield task, opcode


def has_its_operands(task: Task, opcode: Opcode) -> bool:
    """Whether a task has as many operands as its signature asks for, no less and no more."""
    given = {operand.spec.name for operand in task.operands if operand.spec is not None}
    is_complete = all(spec.name in given for spec in opcode.operands if spec.required)
    return is_complete and all(operand.spec is not None for operand in task.operands)


def operands(task: Task, name: str) -> list[Operand]:
    """The operands that a task gives under a name of the signature."""
    return [o for o in task.operands if o.spec is not None and o.spec.name == name]


def operand(task: Task, name: str) -> Operand | None:
    """The first of them, if there is one."""
    return next(iter(operands(task, name)), None)


def named(task: Task, one: Operand) -> str:
    """`` operand `B` of `gemm` ``, or `` input 2 of `concat` `` where there may be several."""
    spec = one.spec
    if spec is None or not spec.variadic:
        return f"operand `{spec.name if spec is not None else '?'}` of `{task.op}`"
    side = [o for o in task.operands if o.access == one.access]
    word = "input" if one.access == "read" else "output"
    place = next(index for index, o in enumerate(side, 1) if o is one)
    return f"{word} {place} of `{task.op}`"


def called(task: Task) -> str:
    """`` `gemm` task `tG` ``, or the opcode alone for a task without a token."""
    return f"`{task.op}` task `{task.token}`" if task.token is not None else f"this `{task.op}`"


def op_span(facts: ProgramFacts, task: Task) -> Span:
    """Where the opcode stands."""
    return facts.span(task.node.op)


def span_of(facts: ProgramFacts, one: Operand, part: Part) -> Span:
    """The operand's name, or the part of its type where the region stands in the task itself."""
    node = one.node.value
    if isinstance(node, ast.RegionExpr) and node.type is not None:
        return facts.span(getattr(node.type, part) or node.type)
    return facts.span(node)


def declared(facts: ProgramFacts, one: Operand, part: Part) -> tuple[Related, ...]:
    """The place of a region's declaration that gives a part of its type."""
    region = one.region
    if region is None or region.name is None or region.node.type is None:
        return ()
    node = getattr(region.node.type, part) or region.node.type
    return (Related(facts.span(node), f"`{region.name}` is declared here"),)


def listed(dims: Dims) -> str:
    """A shape as the language writes it."""
    return f"[{', '.join(map(str, dims))}]"


@dataclass(frozen=True, slots=True)
class Reading:
    """A task's shapes and integer attributes in one iteration."""

    task: Task
    shapes: tuple[Dims, ...]  # by operand
    values: Mapping[str, int | Dims]  # of attributes that hold integers
    iteration: str  # ` (i=3)`; empty where every iteration reads the same

    def shape(self, name: str) -> Dims | None:
        """The shape of the operand of that name."""
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


def readings(facts: ProgramFacts, task: Task, opcode: Opcode) -> Iterator[Reading]:
    """Every distinct reading of a task, in the order of the iterations that first have it.

    None at all where an operand is missing or a shape is not known; a dimension that is not
    positive has been reported, and iterations that have one are left out.
    """
    if not has_its_operands(task, opcode):
        return
    shapes = [terms(o.region.shape if o.region is not None else None) for o in task.operands]
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes):
        return
    layout = _Layout(task, opcode, known)
    for parts, iteration in _rows(facts, task, layout.terms):
        made = layout.reading(parts, iteration)
        if all(dim > 0 for dims in made.shapes for dim in dims):
            yield made


def terms(values: tuple[Folded, ...] | None) -> tuple[Term, ...] | None:
    """Dimensions that all have a value, constant or in each iteration."""
    if values is None:
        return None
    known = tuple(v for v in values if not isinstance(v, float | None) and is_term(v))
    return known if len(known) == len(values) else None


class _Layout:
    """All integers of a task in one row, and the way back."""

    def __init__(self, task: Task, opcode: Opcode, shapes: list[tuple[Term, ...]]) -> None:
        self.task = task
        self.ranks = [len(shape) for shape in shapes]
        self.terms: list[Term] = [term for shape in shapes for term in shape]
        self.attributes: list[tuple[str, int | None]] = []  # name, and length where it is a list
        for spec in opcode.attributes:
            value = usable(task, spec) if spec.type in ("int", "int_list") else None
            if isinstance(value, tuple):
                self.attributes.append((spec.name, len(value)))
                self.terms += value
            elif value is not None:
                self.attributes.append((spec.name, None))
                self.terms.append(value)  # type: ignore[arg-type] # `usable` saw that it is a term

    def reading(self, row: Dims, iteration: str) -> Reading:
        shapes, at = [], 0
        for rank in self.ranks:
            shapes.append(row[at : at + rank])
            at += rank
        values: dict[str, int | Dims] = {}
        for name, length in self.attributes:
            values[name] = row[at] if length is None else row[at : at + length]
            at += 1 if length is None else length
        return Reading(self.task, tuple(shapes), values, iteration)


def _rows(facts: ProgramFacts, task: Task, parts: list[Term]) -> Iterator[tuple[Dims, str]]:
    constant = tuple(part for part in parts if isinstance(part, int))
    if len(constant) == len(parts):
        yield constant, ""
        return
    grid = facts.plan.grid_of(task.loops)
    if grid is not None:
        yield from varying(grid, parts)


def varying(grid: Grid, parts: list[Term]) -> Iterator[tuple[Dims, str]]:
    """The distinct values of some terms, with the first iteration that has them."""
    try:
        columns = [grid.evaluate(part) for part in parts]
    except TermProblem:  # reported where the expression is checked
        return
    table = np.stack(np.broadcast_arrays(*[np.atleast_1d(column) for column in columns]), axis=1)
    _, first = np.unique(table, axis=0, return_index=True)
    for row in sorted(int(index) for index in first):
        yield tuple(int(value) for value in table[row]), iteration_of(grid, row)


def iteration_of(grid: Grid, row: int) -> str:
    """` (i=3, j=0)`, or nothing outside loops."""
    pairs = zip(grid.loops, grid.iteration(row), strict=True)
    inside = ", ".join(f"{loop.variable.name}={value}" for loop, value in pairs)
    return f" ({inside})" if inside else ""


def first_below(
    facts: ProgramFacts, task: Task, term: Term, least: int
) -> tuple[int, str] | None:
    """The first value of a term that is less than `least`, and its iteration."""
    rows = _rows(facts, task, [term])
    return next(((row[0], iteration) for row, iteration in rows if row[0] < least), None)


def undefined(facts: ProgramFacts, task: Task, term: Term) -> str | None:
    """Why a term has no value in some iteration."""
    grid = facts.plan.grid_of(task.loops)
    if isinstance(term, int) or grid is None:
        return None
    try:
        grid.evaluate(term)
    except TermProblem as problem:
        what = "leaves 64 bits" if problem.kind == "overflow" else "divides by zero"
        return f"{what}{iteration_of(grid, problem.row)}"
    return None

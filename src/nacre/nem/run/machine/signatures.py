"""What a task's operands and attributes are, iteration by iteration: mostly one answer for all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nacre.base.elements import ELEMENT_TYPES
from nacre.base.term_columns import Values
from nacre.base.terms import LoopVariable, Operation
from nacre.kernels.interface.call import Call
from nacre.kernels.interface.layouts import Layout, layout
from nacre.nem.model.program import Region, Task
from nacre.nem.plan.calls import (
    Lookup,
    Symbolic,
    call_of,
    resolve_symbols,
    symbolic_terms,
    values_at,
    varying_parts,
)
from nacre.nem.plan.grid import Grid


@dataclass(frozen=True, eq=False)
class Signature:
    """A task in some of its iterations: everything about it but where its operands begin."""

    call: Call | None  # of compute tasks
    layouts: tuple[Layout | None, ...]  # by operand; None: it has no type


@dataclass(frozen=True, eq=False)
class Signatures:
    """The distinct signatures of a task, and which of them each row has."""

    distinct: tuple[Signature, ...]
    index: list[int] | None  # None: one for all rows

    def at(self, row: int) -> Signature:
        """The signature of a row."""
        return self.distinct[0 if self.index is None else self.index[row]]


def signatures(task: Task, grid: Grid, *, ordered: bool = False) -> Signatures:
    """Every distinct signature of a task, in the order of the rows that first have it."""
    symbolic = tuple(dict.fromkeys(symbolic_terms(varying_parts(task))))
    if not symbolic:
        return Signatures((_signature(task, {}, ordered),), None)
    columns = {term: grid.evaluate(term) for term in symbolic}
    table = np.stack(
        [np.broadcast_to(np.asarray(c), (grid.rows,)) for c in columns.values()], axis=1
    )
    _, first, index = np.unique(table, axis=0, return_index=True, return_inverse=True)
    distinct = tuple(_signature(task, values_at(columns, int(row)), ordered) for row in first)
    return Signatures(distinct, index.reshape(-1).tolist())


def offsets(region: Region, grid: Grid) -> Values:
    """Where a region begins in its buffer, in every row."""
    return grid.evaluate(_number(region.offset))


def extents(region: Region, grid: Grid) -> Values:
    """How many bytes a region has, in every row."""
    return grid.evaluate(_number(region.extent))


def _number(value: object) -> int | Symbolic:
    if isinstance(value, int | LoopVariable | Operation):
        return value
    raise ValueError("a region of a program with errors")


def _signature(task: Task, lookup: Lookup, ordered: bool) -> Signature:
    layouts = tuple(_layout(operand.region, lookup) for operand in task.operands)
    is_compute = task.opcode is not None and task.opcode.category != "data_movement"
    return Signature(call_of(task, lookup, ordered) if is_compute else None, layouts)


def _layout(region: Region | None, lookup: Lookup) -> Layout | None:
    if region is None or region.elem is None or region.shape is None:
        return None
    strides = None if region.strides is None else resolve_symbols(region.strides, lookup)
    return layout(ELEMENT_TYPES[region.elem], resolve_symbols(region.shape, lookup), strides)

"""Operands of one task that share bytes, in every iteration at once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Literal

import numpy as np
from msgspec import Struct

from nacre.base.term_columns import Column, TermProblem, Values
from nacre.nem.model.program import Operand, Region, Task
from nacre.nem.plan.columns import OncePerPlan, as_term
from nacre.nem.plan.footprints import Footprint
from nacre.nem.plan.grid import Grid
from nacre.nem.plan.overlap import aligned_overlaps, expand_runs, shared_bytes
from nacre.nem.plan.plan import Plan

Kind = Literal[
    "transfer",  # source and destination
    "store",
    "shifted",  # input and output of an operation that may work in place, but not so
    "in place",  # input and output of one that may not
    "outputs",  # two outputs
]


class OperandOverlap(Struct, frozen=True):
    """Two operands of a task and the first bytes that they share."""

    kind: Kind
    task: Task
    first: Operand
    second: Operand  # the later one in the text
    grid: Grid
    row: int
    low: int
    high: int
    varies: bool  # not in the same way in every iteration


class _OperandFootprint(Struct, frozen=True):
    operand: Operand
    footprint: Footprint


def _operand_overlaps(plan: Plan) -> tuple[OperandOverlap, ...]:
    """Every task whose operands share bytes that they may not share."""
    overlaps: list[OperandOverlap] = []
    for block in plan.top.walk():
        for task in block.tasks:
            if task.opcode is not None and _uses_a_buffer_twice(task):
                overlaps += _TaskOperands(task, block.grid, plan).overlaps()
    return tuple(overlaps)


operand_overlaps = OncePerPlan(_operand_overlaps)


def _uses_a_buffer_twice(task: Task) -> bool:
    names = [o.region.buffer.index for o in task.operands if o.region and o.region.buffer]
    return len(set(names)) < len(names)


def _kind(task: Task) -> Kind:
    """What it is called when an input and an output of a task meet."""
    if task.op == "transfer":
        return "transfer"
    if task.op == "store":
        return "store"
    may_work_in_place = task.opcode is not None and "in_place" in task.opcode.traits
    return "shifted" if may_work_in_place else "in place"


class _TaskOperands:
    """One task, its operands placed by buffer."""

    def __init__(self, task: Task, grid: Grid, plan: Plan) -> None:
        self._task = task
        self._grid = grid
        self._reads: dict[int, list[_OperandFootprint]] = {}
        self._writes: dict[int, list[_OperandFootprint]] = {}
        for operand in task.operands:
            footprint = plan.footprint_of(task, operand)
            if footprint is not None and operand.region is not None and operand.region.buffer:
                table = self._writes if operand.access == "write" else self._reads
                table.setdefault(operand.region.buffer.index, []).append(
                    _OperandFootprint(operand, footprint)
                )

    def overlaps(self) -> Iterator[OperandOverlap]:
        """One sharing for each output that meets an input, and one among the outputs."""
        for buffer, writes in self._writes.items():
            for write in writes:
                yield from self._overlaps_with_inputs(write, self._reads.get(buffer, []))
            if len(writes) > 1:
                yield from self._overlaps_among_outputs(writes)

    def _overlaps_with_inputs(
        self, write: _OperandFootprint, reads: list[_OperandFootprint]
    ) -> Iterator[OperandOverlap]:
        kind = _kind(self._task)
        if kind == "transfer" and self._task.decorator("memmove") is not None:
            return
        for read in reads:
            if not _extents_meet(read.footprint, write.footprint):
                continue
            if kind == "shifted" and _is_same_place(read.operand.region, write.operand.region):
                continue
            rows = slice(0, self._grid.rows)
            hits = aligned_overlaps(read.footprint, write.footprint, rows, rows, self._grid.rows)
            if hits.size and kind == "shifted":
                hits = hits[~self._coincide(read, write, hits)]
            if hits.size:
                yield self._overlap(kind, read, write, int(hits[0]))
                return

    def _overlap(
        self, kind: Kind, a: _OperandFootprint, b: _OperandFootprint, row: int
    ) -> OperandOverlap:
        first, second = sorted((a.operand, b.operand), key=lambda o: o.node.start)
        base = a.footprint.low_at(row)
        delta = b.footprint.low_at(row) - base
        shared = shared_bytes(a.footprint.pattern(row), b.footprint.pattern(row), delta)
        low, high = shared if shared is not None else (0, 0)
        varies = any(not isinstance(p.footprint.low, int) for p in (a, b)) or any(
            not isinstance(p.footprint.pattern_index, int) for p in (a, b)
        )
        return OperandOverlap(
            kind, self._task, first, second, self._grid, row, base + low, base + high, varies
        )

    def _coincide(self, a: _OperandFootprint, b: _OperandFootprint, rows: Column) -> Column:
        """In which of the rows both operands have every element in the same place."""
        same_place = np.asarray(a.footprint.low == b.footprint.low)
        has_same_start = np.broadcast_to(same_place, (self._grid.rows,))[rows]
        mapping = _same_mapping(a.operand.region, b.operand.region, self._grid)
        coincides: Column = has_same_start & np.broadcast_to(mapping, (self._grid.rows,))[rows]
        return coincides

    def _overlaps_among_outputs(self, writes: list[_OperandFootprint]) -> Iterator[OperandOverlap]:
        """Whether two of several outputs meet: sorted by row and byte, neighbours decide."""
        size = 1 + max(int(np.max(write.footprint.high)) for write in writes)
        if size * self._grid.rows >= 1 << 62:  # far outside any buffer, which has been reported
            return
        rows = np.arange(self._grid.rows, dtype=np.int64)
        parts = [
            (*expand_runs(write.footprint, rows, rows)[:3], number)
            for number, write in enumerate(writes)
        ]
        group, low, high = (np.concatenate([p[i] for p in parts]) for i in range(3))
        owner = np.concatenate([np.full(p[0].size, p[3], np.int64) for p in parts])
        order = np.lexsort((low, group))
        group, low, high, owner = group[order], low[order], high[order], owner[order]
        # Runs of one output are apart, so whatever reaches beyond the next start is another's.
        reach = np.maximum.accumulate(group * size + high)
        hits = np.flatnonzero(reach[:-1] > (group * size + low)[1:])
        if hits.size:
            hit = int(hits[0])
            row = int(group[hit + 1])
            ends = np.flatnonzero((group == row) & (low <= low[hit + 1]) & (high > low[hit + 1]))
            owners = sorted({int(owner[end]) for end in ends})
            for a, b in pairwise(owners[:2]):
                yield self._overlap("outputs", writes[a], writes[b], row)


def _extents_meet(a: Footprint, b: Footprint) -> bool:
    """Whether two footprints may share a byte in any two rows."""
    (low, high), (other_low, other_high) = a.extent, b.extent
    return low < other_high and other_low < high


def _is_same_place(a: Region | None, b: Region | None) -> bool:
    """Whether two regions have every element in the same place, told from what is written."""
    if a is b:
        return True
    if a is None or b is None or a.offset is None:
        return False
    return (a.offset, a.elem, a.shape, a.strides) == (b.offset, b.elem, b.shape, b.strides)


def _same_mapping(a: Region | None, b: Region | None, grid: Grid) -> Column:
    """In which rows both regions lay their elements out in the same way."""
    nowhere: Column = np.zeros(1, bool)
    if a is None or b is None or a.elem != b.elem:
        return nowhere
    is_dense = a.strides is None and b.strides is None
    of_a = _columns(a.shape, grid) if is_dense else _shape_and_strides(a, grid)
    of_b = _columns(b.shape, grid) if is_dense else _shape_and_strides(b, grid)
    if of_a is None or of_b is None or len(of_a) != len(of_b):
        return nowhere
    same: Column = np.ones(1, bool)
    for x, y in zip(of_a, of_b, strict=True):
        same = same & np.asarray(x == y)
    return same


def _shape_and_strides(region: Region, grid: Grid) -> list[Values] | None:
    """Shape and strides in every row; those of a dense tensor where none are given."""
    shape = _columns(region.shape, grid)
    if shape is None:
        return None
    if region.strides is not None:
        strides = _columns(region.strides, grid)
        return None if strides is None else shape + strides
    dense: list[Values] = []
    step: Values = 1
    for dim in reversed(shape):
        dense.append(step)
        step = step * dim
    return shape + dense[::-1]


def _columns(items: tuple[object, ...] | None, grid: Grid) -> list[Values] | None:
    columns: list[Values] = []
    for item in items or ():
        term = as_term(item)
        if term is None:
            return None
        try:
            columns.append(grid.evaluate(term))
        except TermProblem:  # reported where the region is checked
            return None
    return columns if items is not None else None

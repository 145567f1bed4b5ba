"""EXT10, EXT12, EXT13: what tasks ask of the types of their regions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from nacre.base.diagnostics import Diagnostic, Related
from nacre.base.rules import rule
from nacre.base.term_columns import Column, TermProblem
from nacre.base.terms import INT64_MAX
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.wording import in_iteration, region_text
from nacre.nem.model.program import Operand, Region, Task
from nacre.nem.plan.columns import as_term
from nacre.nem.plan.footprints import copies_elements, strided_pattern
from nacre.nem.plan.grid import Grid

_COPIES = ("transfer", "store")


@rule("EXT10", "untyped-compute-operand", "Type System / Region Type Syntax")
def untyped_compute_operand(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A compute task has an operand without element type, shape and layout.

    Transfers and stores move bytes and need none of them.

    Bad (-) and good (+):

          buffer A : L2 (size=64)
          buffer B : L1 (size=64)
        - let X = region(B, 0, 64)
        + let X = region(B, 0, 64) elem=i8, shape=[64], layout=C
          t = transfer.sync(dst=X, src=region(A, 0, 64))
          r = relu.sync in X out X
          s = store.sync(dst=region(A, 0, 64), src=X)
    """
    seen: set[int] = set()
    for task, operand, region in _operands(facts):
        if task.op in _COPIES or task.opcode is None or region.has_type or id(region) in seen:
            continue
        seen.add(id(region))
        yield untyped_compute_operand.at(
            facts.span(operand.node),
            f"{region_text(region)} has no element type, but `{task.op}` computes with it",
            related=_declaration(facts, operand, region),
            help="add `elem=`, `shape=` and `layout=` or `strides=` to the region",
        )


def _declaration(facts: ProgramFacts, operand: Operand, region: Region) -> tuple[Related, ...]:
    if region.name is None or operand.node.value is region.node:
        return ()
    return (Related(facts.span(region.node), f"`{region.name}` is declared here"),)


def _operands(facts: ProgramFacts) -> Iterator[tuple[Task, Operand, Region]]:
    for task in facts.program.tasks:
        for operand in task.operands:
            if operand.region is not None:
                yield task, operand, operand.region


@rule("EXT12", "layout-does-not-match-rank", "Type System / Layout and Strides", severity="warning")
def layout_does_not_match_rank(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A layout names more or fewer axes than the shape has dimensions.

    Layouts that are not a row of capital letters name no axes and are left alone.

    Bad (-) and good (+):

          buffer A : L2 (size=64)
        - r = region(A, 0, 4) elem=i8, shape=[4], layout=NHWC
        + r = region(A, 0, 4) elem=i8, shape=[1, 2, 2, 1], layout=NHWC
    """
    for region in facts.program.regions:
        type_, layout = region.type_node, region.layout
        if type_ is None or type_.layout is None or layout is None or region.shape is None:
            continue
        if layout.isalpha() and layout.isupper() and len(layout) != len(region.shape):
            message = (
                f"layout `{layout}` of {region_text(region)} names {_axes(len(layout))}, "
                f"but the shape has {len(region.shape)}"
            )
            yield layout_does_not_match_rank.at(facts.span(type_.layout), message)


def _axes(count: int) -> str:
    return f"{count} axis" if count == 1 else f"{count} axes"


@rule("EXT13", "written-region-overlaps-itself", "Hazards and Aliasing Rules 1")
def written_region_overlaps_itself(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A task writes a region whose strides put two elements into one place.

    Which of them stays would be left to chance. Regions that are only read may do so.

    Bad (-) and good (+):

          buffer A : L2 (size=64)
          buffer B : L1 (size=64)
          let X = region(B, 0, 16) elem=i8, shape=[4, 4], layout=MN
        - let Y = region(B, 16, 16) elem=i8, shape=[4, 4], strides=[0, 1]
        + let Y = region(B, 16, 16) elem=i8, shape=[4, 4], strides=[1, 4]
          t = transfer.sync(dst=X, src=region(A, 0, 16))
          r = relu.sync in X out Y
          s = store.sync(dst=region(A, 16, 4), src=region(B, 16, 4))
    """
    seen: set[int] = set()
    for task, operand, region in _operands(facts):
        if operand.access == "read" or region.strides is None or id(region) in seen:
            continue
        if task.op in _COPIES and not copies_elements(task):  # bytes are copied, not elements
            continue
        seen.add(id(region))
        grid = facts.plan.region_grid(region)
        row = _first_self_overlap(region, grid) if grid is not None else None
        if grid is not None and row is not None:
            varies = any(not isinstance(x, int) for x in (*(region.shape or ()), *region.strides))
            yield written_region_overlaps_itself.at(
                facts.span(operand.node),
                f"`{task.op}` writes {region_text(region)}, whose strides put several elements "
                f"into one place{in_iteration(grid, row) if varies else ''}",
                related=_declaration(facts, operand, region),
            )


def _first_self_overlap(region: Region, grid: Grid) -> int | None:
    """The first row in which two elements lie in one place."""
    shape, strides = region.shape, region.strides
    if shape and strides and len(shape) == len(strides) and _are_numbers((*shape, *strides)):
        return 0 if _overlaps(shape, strides) else None
    table = _table(region, grid)
    if table is None or region.shape is None:
        return None
    distinct, first = np.unique(table, axis=0, return_index=True)
    rank = len(region.shape)
    rows = [
        int(row)
        for parts, row in zip(distinct, first, strict=True)
        if _overlaps(tuple(int(x) for x in parts[:rank]), tuple(int(x) for x in parts[rank:]))
    ]
    return min(rows, default=None)


def _table(region: Region, grid: Grid) -> Column | None:
    """Shape and strides in every row; one row where they do not vary."""
    shape, strides = region.shape, region.strides
    if not shape or strides is None or len(shape) != len(strides):
        return None
    columns = []
    for part in (*shape, *strides):
        term = as_term(part)
        if term is None:
            return None
        try:
            columns.append(np.atleast_1d(np.asarray(grid.evaluate(term), np.int64)))
        except TermProblem:  # reported where the region is checked
            return None
    return np.stack(np.broadcast_arrays(*columns), axis=1)


# Counting the places of a larger tensor would take seconds; none that large fits a device.
_MOST_ELEMENTS = 1 << 24


def _are_numbers(values: tuple[object, ...]) -> bool:
    return all(type(value) is int for value in values)


@lru_cache(maxsize=4096)
def _overlaps(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether two elements share a place, unless the strides leave the region: EXT04."""
    steps = [(dim - 1) * stride for dim, stride in zip(shape, strides, strict=True)]
    if min(shape) < 1 or min(steps) < 0 or sum(steps) > INT64_MAX // 8:
        return False
    count = math.prod(shape)
    if count > _MOST_ELEMENTS:
        return False
    # One byte to an element: the runs then count the distinct places.
    runs = strided_pattern(shape, strides, 8).runs
    return int((runs[:, 1] - runs[:, 0]).sum()) < count

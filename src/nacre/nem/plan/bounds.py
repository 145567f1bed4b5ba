"""Regions measured against their buffers and types, in every iteration at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from msgspec import Struct

from nacre.base.compression_forms import table_bytes
from nacre.base.elements import ELEMENT_TYPES
from nacre.base.term_columns import TermProblem, Values
from nacre.nem.model.folding import Folded
from nacre.nem.model.program import Compression, Region
from nacre.nem.plan.columns import (
    Condition,
    Exact,
    OncePerPlan,
    add,
    as_term,
    first_row,
    larger,
    multiply,
    product,
    smaller,
    value_at,
)
from nacre.nem.plan.grid import Grid
from nacre.nem.plan.plan import Plan
from nacre.nem.plan.sound_bounds import is_surely_sound
from nacre.nem.syntax import ast

Kind = Literal[
    "no value",  # an expression divides by zero or leaves 64 bits
    "offset below 0",
    "extent below 0",
    "extent of 0",
    "dimension below 1",
    "past the buffer",  # found: its end; limit: the buffer's size
    "short",  # found: its extent; limit: the bytes of its elements
    "stride past the end",  # found: the end of the last element; limit: its extent
    "stride before the start",  # found: the first byte, below 0
    "compressed short",  # found: its extent; limit: the fewest bytes of its form
    "compressed long",  # found: its extent; limit: the most bytes of its form
    "parts of one size",  # found: how many elements are to be cut; limit: into how many parts
]


class RegionProblem(Struct, frozen=True):
    """What is wrong with a region, in the first iteration in which it is."""

    kind: Kind
    region: Region
    grid: Grid
    row: int
    node: ast.Node  # the expression to blame
    value: int = 0
    limit: int = 0
    index: int = 0  # of a dimension
    is_everywhere: bool = True  # in all iterations, not only in some
    varies: bool = False  # the numbers are those of this iteration
    problem: TermProblem | None = None


def _region_problems(plan: Plan) -> tuple[RegionProblem, ...]:
    """Everything that is wrong with the bounds of a program's regions."""
    problems: list[RegionProblem] = []
    for region in plan.program.regions:
        grid = plan.region_grid(region)
        if grid is not None and not is_surely_sound(region, grid):
            problems += find_region_problems(region, grid)
    return tuple(problems)


def find_region_problems(region: Region, grid: Grid) -> list[RegionProblem]:
    """What is wrong with one region, asked of every iteration."""
    return _RegionBounds(region, grid).find_problems()


region_problems = OncePerPlan(_region_problems)


@dataclass(slots=True)
class _RegionBounds:
    """A region with its expressions evaluated; None for what has no value."""

    region: Region
    grid: Grid
    problems: list[RegionProblem] = field(default_factory=list)

    def find_problems(self) -> list[RegionProblem]:
        """One problem for every cause."""
        node = self.region.node
        offset = self._evaluate(self.region.offset, node.offset)
        extent = self._evaluate(self.region.extent, node.extent)
        starts = offset is not None and not self._flag("offset below 0", node.offset, offset, 0)
        sized = (
            extent is not None
            and not self._flag("extent below 0", node.extent, extent, 0)
            and not self._flag("extent of 0", node.extent, extent, 1)
        )
        if starts and sized and offset is not None and extent is not None:
            self._require_inside_buffer(offset, extent)
        if self.region.type_node is not None:
            self._require_room_for_elements(extent if sized else None)
        return self.problems

    def _evaluate(self, folded: Folded, node: ast.Node) -> Values | None:
        term = as_term(folded)
        if term is None or isinstance(term, int):
            return term
        try:
            return self.grid.evaluate(term)
        except TermProblem as problem:
            self.problems.append(
                RegionProblem(
                    "no value", self.region, self.grid, problem.row, node, problem=problem
                )
            )
            return None

    def _flag(
        self,
        kind: Kind,
        node: ast.Node,
        values: Exact,
        least: int,
        index: int = 0,
    ) -> bool:
        """Note values below the least that is allowed; whether there are any."""
        return self._note(kind, node, values < least, values, least, index)

    def _note(
        self,
        kind: Kind,
        node: ast.Node,
        is_wrong: Condition,
        values: Exact,
        limit: Exact,
        index: int = 0,
    ) -> bool:
        row = first_row(is_wrong)
        if row is None:
            return False
        problem = RegionProblem(
            kind,
            self.region,
            self.grid,
            row,
            node,
            value_at(values, row),
            value_at(limit, row),
            index,
            bool(np.all(is_wrong)),
            not isinstance(values, int) or not isinstance(limit, int),
        )
        self.problems.append(problem)
        return True

    def _require_inside_buffer(self, offset: Values, extent: Values) -> None:
        buffer = self.region.buffer
        if buffer is None or buffer.size is None or buffer.size <= 0:
            return
        end = add(offset, extent)
        node = self.region.node
        blamed = ast.Node(node.offset.start, node.extent.end)
        self._note("past the buffer", blamed, end > buffer.size, end, buffer.size)

    def _require_room_for_elements(self, extent: Values | None) -> None:
        region, type_ = self.region, self.region.type_node
        if type_ is None or type_.shape is None or region.shape is None:
            return
        shape = self._evaluate_list(region.shape, type_.shape)
        strides: tuple[Values, ...] | None = None
        if region.strides is not None and type_.strides is not None:
            strides = self._evaluate_list(region.strides, type_.strides)
        element = ELEMENT_TYPES.get(region.elem or "")
        if shape is None or element is None or self._has_bad_dimension(shape, type_.shape):
            return
        if extent is None:
            return
        if region.compression is not None:
            self._require_compressed_size(extent, product(shape), element.bits, region.compression)
            return
        needed = _bytes(product(shape), element.bits)
        node = region.node.extent
        if self._note("short", node, extent < needed, extent, needed):
            return
        if strides is not None and type_.strides is not None and len(strides) == len(shape):
            self._require_strides_inside(extent, shape, strides, element.bits, type_.strides)

    def _require_compressed_size(
        self, extent: Values, count: Exact, bits: int, compression: Compression
    ) -> None:
        """The extent of a compressed region is one that its form can have."""
        form, node = compression.form, self.region.node.extent
        if form is None:
            return
        if form.name == "sparse":
            least = _bytes(count, 1)
            most = add(least, _bytes(count, bits))
        else:
            tables = compression.node.tables or compression.node
            if self._note(
                "parts of one size", tables, count % form.tables != 0, count, form.tables
            ):
                return
            least = most = add(_bytes(count, form.bits), table_bytes(form, bits))
        if not self._note("compressed short", node, extent < least, extent, least):
            self._note("compressed long", node, extent > most, extent, most)

    def _evaluate_list(
        self, items: tuple[Folded, ...], node: ast.ListLit | ast.NameRef
    ) -> tuple[Values, ...] | None:
        nodes = _item_nodes(node, len(items))
        values = [self._evaluate(item, part) for item, part in zip(items, nodes, strict=True)]
        known = tuple(value for value in values if value is not None)
        return known if len(known) == len(items) else None

    def _has_bad_dimension(
        self, shape: tuple[Values, ...], node: ast.ListLit | ast.NameRef
    ) -> bool:
        nodes = _item_nodes(node, len(shape))
        flagged = [
            self._flag("dimension below 1", part, dim, 1, index)
            for index, (dim, part) in enumerate(zip(shape, nodes, strict=True))
        ]
        return any(flagged)

    def _require_strides_inside(
        self,
        extent: Values,
        shape: tuple[Values, ...],
        strides: tuple[Values, ...],
        bits: int,
        node: ast.Node,
    ) -> None:
        """The elements that the strides lead to lie within the extent."""
        first: Exact = 0
        last: Exact = 0
        for dim, stride in zip(shape, strides, strict=True):
            step = multiply(add(dim, -1), stride)
            first = add(first, smaller(step, 0))
            last = add(last, larger(step, 0))
        low = multiply(first, bits) // 8
        high = _bytes(add(last, 1), bits)
        if not self._flag("stride before the start", node, low, 0):
            self._note("stride past the end", node, high > extent, high, extent)


def _bytes(elements: Exact, bits: int) -> Exact:
    return add(multiply(elements, bits), 7) // 8


def _item_nodes(node: ast.ListLit | ast.NameRef, count: int) -> Iterator[ast.Node]:
    """The expressions of a list, or the name that stands for it, once for each item."""
    if isinstance(node, ast.ListLit):
        return iter(node.items)
    return iter([node] * count)

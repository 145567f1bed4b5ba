"""Regions by the names that users give them: a let, one iteration of it, a part of a buffer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nacre.base.elements import ELEMENT_TYPES
from nacre.base.excerpt import quoted
from nacre.base.suggest import did_you_mean
from nacre.kernels.call import TensorType
from nacre.nem.model.program import Buffer, Region
from nacre.nem.plan.columns import value_at
from nacre.nem.plan.grid import Grid
from nacre.nem.plan.plan import Plan
from nacre.nem.run.layouts import Layout, layout
from nacre.nem.run.naming import split_instance
from nacre.nem.run.signatures import concrete, extents, lookup_at, offsets, tensor_type
from nacre.nem.run.steps import Steps, row_of

_BYTES = re.compile(
    r"(?P<name>\w+)\s*\[\s*(?P<low>\d{1,18})\s*(?::|\.\.)\s*(?P<high>\d{1,18})\s*\]"
)


class UnknownNameError(Exception):
    """A user named something that is not there; the message says what there is."""


@dataclass(frozen=True, eq=False)
class Located:
    """A region in one iteration: its bytes in a buffer and, where it has one, its type."""

    name: str
    buffer: Buffer
    offset: int
    extent: int
    type: TensorType | None
    layout: Layout
    region: Region | None = None

    @property
    def end(self) -> int:
        """One past its last byte."""
        return self.offset + self.extent


def locate(text: str, steps: Steps, order: Sequence[int]) -> Located:
    """What a name means now: a let at the latest iteration, or at the one that it names.

    `Y_tile_i` is the let itself, `Y_tile_0` and `Y_tile_i[0]` the let at i = 0; `BUFFER` is a
    whole buffer, and `BUFFER[0:64]` some of its bytes. `order` are the steps taken so far.
    """
    text, plan = str(text), steps.plan
    part = _BYTES.fullmatch(text.strip())
    buffers = {b.name: b for b in plan.program.buffers}
    if part is not None and part["name"] in buffers:
        return _bytes_of(text, buffers[part["name"]], int(part["low"]), int(part["high"]))
    found = _region(text, plan, steps, order)
    if found is not None:
        return _located(text, *found, plan)
    if text in buffers:
        return _bytes_of(text, buffers[text], 0, buffers[text].size or 0)
    raise UnknownNameError(_unknown(text, plan))


def _bytes_of(text: str, buffer: Buffer, low: int, high: int) -> Located:
    if not low < high <= (buffer.size or 0):
        raise UnknownNameError(
            f"`{text}` is no part of `{buffer.name}`, which has {buffer.size} bytes"
        )
    return Located(text, buffer, low, high - low, None, layout(_BYTE, (high - low,)))


_BYTE = ELEMENT_TYPES["u8"]


def named_regions(plan: Plan) -> dict[str, list[Region]]:
    """The regions that have a name; sibling loops may use one again."""
    found: dict[str, list[Region]] = {}
    for region in plan.program.regions:
        if region.name is not None:
            found.setdefault(region.name, []).append(region)
    return found


def _region(
    text: str, plan: Plan, steps: Steps, order: Sequence[int]
) -> tuple[Region, Grid, int] | None:
    regions = named_regions(plan)
    parts = split_instance(text)
    if parts is None:
        return None
    name, iteration = parts
    for region in regions.get(name, []):
        grid = plan.region_grid(region)
        if grid is None:
            continue
        row = latest_row(region, grid, steps, order) if iteration is None else None
        if iteration is not None:
            row = row_of(grid, iteration)
        if row is not None:
            return region, grid, row
    return _by_numbers(text, regions, plan)


def _by_numbers(
    text: str, regions: dict[str, list[Region]], plan: Plan
) -> tuple[Region, Grid, int] | None:
    """`Y_tile_0` for a let `Y_tile_i` inside a loop over i."""
    for candidates in regions.values():
        for region in candidates:
            grid = plan.region_grid(region)
            if grid is None or not grid.loops:
                continue
            for count in range(1, len(grid.loops) + 1):
                iteration = _numbers_in(
                    text, region, [x.variable.name for x in grid.loops[-count:]]
                )
                row = None if iteration is None else _row_with(grid, iteration)
                if row is not None:
                    return region, grid, row
    return None


def _numbers_in(text: str, region: Region, variables: list[str]) -> tuple[int, ...] | None:
    ending = "".join(f"_{name}" for name in variables)
    if region.name is None or not region.name.endswith(ending):
        return None
    stem = region.name[: len(region.name) - len(ending)]
    match = re.fullmatch(re.escape(stem) + r"_(-?\d{1,18})" * len(variables), text)
    return None if match is None else tuple(int(number) for number in match.groups())


def _row_with(grid: Grid, inner: tuple[int, ...]) -> int | None:
    """The first row in which the innermost loop variables have these values."""
    rows = np.arange(grid.rows)
    for column, value in zip(grid.values[-len(inner) :], inner, strict=True):
        rows = rows[column[rows] == value]
    return int(rows[0]) if rows.size else None


def latest_row(region: Region, grid: Grid, steps: Steps, order: Sequence[int]) -> int:
    """The row of the latest step inside the loops around a region; the first row before any."""
    depth = len(region.loops)
    if depth == 0:
        return 0
    for step in reversed(order):
        statement = steps.statement(step)
        if len(statement.loops) >= depth and statement.loops[depth - 1] is region.loops[-1]:
            own = steps.grid(statement)
            return int(own.row_in(grid, np.array([steps.row[step]]))[0])
    return 0


def _located(text: str, region: Region, grid: Grid, row: int, plan: Plan) -> Located:
    if region.buffer is None:
        raise UnknownNameError(f"`{text}` has no buffer")
    offset, extent = value_at(offsets(region, grid), row), value_at(extents(region, grid), row)
    if region.elem is None or region.shape is None:
        return Located(text, region.buffer, offset, extent, None, layout(_BYTE, (extent,)), region)
    lookup = lookup_at((*region.shape, *(region.strides or ()), region.quant), grid, row)
    type_ = tensor_type(region, lookup)
    strides = None if region.strides is None else concrete(region.strides, lookup)
    made = layout(type_.elem, type_.shape, strides)
    return Located(text, region.buffer, offset, extent, type_, made, region)


def _unknown(text: str, plan: Plan) -> str:
    names = [*named_regions(plan), *(b.name for b in plan.program.buffers)]
    hint = did_you_mean(text, names)
    listed = ", ".join(f"`{name}`" for name in names[:8])
    return f"no region or buffer {quoted(text)}; {hint or f'there are {listed}'}"

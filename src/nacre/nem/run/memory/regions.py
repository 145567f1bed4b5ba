"""Regions by the names that users give them: a let, one iteration of it, a part of a buffer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nacre.base.elements import ELEMENT_TYPES
from nacre.base.excerpt import backquote
from nacre.base.suggest import did_you_mean
from nacre.kernels.interface.call import TensorType
from nacre.kernels.interface.layouts import Layout, layout
from nacre.nem.model.program import Buffer, Loop, Region
from nacre.nem.plan.calls import lookup_at, resolve_symbols, tensor_type
from nacre.nem.plan.columns import value_at
from nacre.nem.plan.grid import Grid
from nacre.nem.plan.plan import Plan
from nacre.nem.run.machine.signatures import extents, offsets
from nacre.nem.run.sessions.naming import split_instance
from nacre.nem.run.sessions.steps import Steps, row_of

_BYTES = re.compile(
    r"(?P<name>\w+)\s*\[\s*(?P<low>[0-9]{1,18})\s*(?::|\.\.)\s*(?P<high>[0-9]{1,18})\s*\]"
)


class UnknownNameError(Exception):
    """A user named something that is not there; the message says what there is."""


@dataclass(frozen=True, eq=False)
class LocatedRegion:
    """A region in one iteration: its bytes in a buffer and, where it has one, its type."""

    name: str
    buffer: Buffer
    offset: int
    extent: int
    type: TensorType | None
    layout: Layout
    region: Region | None = None
    iteration: tuple[tuple[str, int], ...] = ()  # the loop variables and their values
    strides: tuple[int, ...] | None = None  # in elements, where the region says them

    @property
    def end(self) -> int:
        """One past its last byte."""
        return self.offset + self.extent


class LatestSteps:
    """The latest step inside each loop; looks only at the steps since it was last asked."""

    def __init__(self, steps: Steps, order: Sequence[int]) -> None:
        self.steps = steps
        self._order = order
        self._known: dict[int, list[tuple[int, int]]] = {}  # loop -> (steps taken by then, step)
        self._scanned: dict[int, int] = {}

    def latest_inside(self, loop: Loop) -> int | None:
        """The latest step in a loop; None before any."""
        known, step_count = self._known.setdefault(loop.position, []), len(self._order)
        while known and known[-1][0] > step_count:  # the session went back
            known.pop()
        begin = self._scanned.get(loop.position, 0)
        if begin > step_count:
            begin = known[-1][0] if known else 0
        self._scanned[loop.position] = step_count
        for count in range(step_count, begin, -1):
            step = self._order[count - 1]
            if self.is_inside(step, loop):
                known.append((count, step))
                break
        return known[-1][1] if known else None

    def is_inside(self, step: int, loop: Loop) -> bool:
        """Whether a step lies in a loop."""
        return any(around is loop for around in self.steps.statement(step).loops)

    def next_inside(self, loop: Loop) -> int | None:
        """The first step in a loop, in program order, that has not been taken."""
        is_taken = np.zeros(self.steps.count, np.bool_)
        is_taken[list(self._order)] = True
        left = [
            numbers[~is_taken[numbers]]
            for position, numbers in self.steps.numbers.items()
            if any(around is loop for around in self.steps.statements[position].loops)
        ]
        return min((int(steps.min()) for steps in left if steps.size), default=None)


@dataclass(frozen=True, eq=False)
class Moment:
    """Which iteration a bare name means: that of a step, where it lies in the region's loops."""

    latest: LatestSteps
    step: int | None = None
    looks_ahead: bool = False  # else the next iteration of those loops counts, not the latest

    def step_inside(self, loop: Loop) -> tuple[int | None, bool]:
        """The step whose iteration of a loop is meant, and whether it is still to come."""
        if self.step is not None and self.latest.is_inside(self.step, loop):
            return self.step, True
        coming = self.latest.next_inside(loop) if self.looks_ahead else None
        return (self.latest.latest_inside(loop), False) if coming is None else (coming, True)


class Regions:
    """The regions and buffers of a program by name."""

    def __init__(self, steps: Steps, order: Sequence[int]) -> None:
        self.steps = steps
        self.plan = steps.plan
        self.latest = LatestSteps(steps, order)
        self.buffers = {b.name: b for b in self.plan.program.buffers}
        self.named = named_regions(self.plan)

    def locate(self, text: str, moment: Moment | None = None) -> LocatedRegion:
        """What a name means now: a let at the latest iteration, or at the one that it names.

        `Y_tile_i` is the let itself, `Y_tile_0` and `Y_tile_i[0]` the let at i = 0; `BUFFER` is a
        whole buffer, and `BUFFER[0:64]` some of its bytes.
        """
        text = str(text)
        part = _BYTES.fullmatch(text.strip())
        if part is not None and part["name"] in self.buffers:
            return _locate_bytes(
                text, self.buffers[part["name"]], int(part["low"]), int(part["high"])
            )
        region = self._region(text, moment or Moment(self.latest))
        if region is not None:
            return _locate(text, *region)
        if text in self.buffers:
            return _locate_bytes(text, self.buffers[text], 0, self.buffers[text].size or 0)
        raise UnknownNameError(_unknown_name_text(text, self.plan))

    def _region(self, text: str, moment: Moment) -> tuple[Region, Grid, int] | None:
        parts = split_instance(text)
        if parts is None:
            return None
        name, iteration = parts
        if iteration is None and name in self.named:
            return self.region_at(self.named[name], moment)
        for region in self.named.get(name, []):
            grid = self.plan.region_grid(region)
            row = None if grid is None or iteration is None else row_of(grid, iteration)
            if grid is not None and row is not None:
                return region, grid, row
        if name in self.named:
            raise UnknownNameError(self._iterations_text(name, iteration or ()))
        return _numbered_region(text, self.named, self.plan)

    def _iterations_text(self, name: str, iteration: tuple[int, ...]) -> str:
        """Why no region of a name has an iteration: which there are."""
        asked = f"`{name}[{', '.join(map(str, iteration))}]`"
        grid = self.plan.region_grid(self.named[name][-1])
        if grid is None or not grid.loops:
            return f"{asked} is no iteration: `{name}` is in no loop"
        if not grid.rows:
            return f"{asked} is out of range: the loop around `{name}` has no iteration"
        ranges = (
            f"`{loop.variable.name}` goes from {column.min()} to {column.max()}"
            for loop, column in zip(grid.loops, grid.values, strict=True)
        )
        return f"{asked} is out of range: {', '.join(ranges)}"

    def region_at(
        self, candidates: Sequence[Region], moment: Moment
    ) -> tuple[Region, Grid, int] | None:
        """The region of one name, and the iteration, that are meant: sibling loops share names."""
        begun, others = [], []
        for region in candidates:
            grid = self.plan.region_grid(region)
            if grid is None:
                continue
            step, is_coming = (
                moment.step_inside(region.loops[-1]) if region.loops else (None, False)
            )
            if step is None:
                others.append((region, grid, 0))
                continue
            step_grid = self.steps.grid(self.steps.statement(step))
            row = int(step_grid.row_in(grid, np.array([self.steps.row[step]]))[0])
            if step == moment.step:
                return region, grid, row
            # Of loops that follow each other the next one, else the one that ended last.
            begun.append(((not is_coming, step if is_coming else -step), (region, grid, row)))
        if begun:
            return min(begun, key=lambda candidate: candidate[0])[1]
        return others[0] if others else None


def _locate_bytes(text: str, buffer: Buffer, low: int, high: int) -> LocatedRegion:
    if not low < high <= (buffer.size or 0):
        raise UnknownNameError(
            f"`{text}` is no part of `{buffer.name}`, which has {buffer.size} bytes"
        )
    return LocatedRegion(text, buffer, low, high - low, None, layout(_BYTE, (high - low,)))


_BYTE = ELEMENT_TYPES["u8"]


def named_regions(plan: Plan) -> dict[str, list[Region]]:
    """The regions that have a name; sibling loops may use one again."""
    by_name: dict[str, list[Region]] = {}
    for region in plan.program.regions:
        if region.name is not None:
            by_name.setdefault(region.name, []).append(region)
    return by_name


def _numbered_region(
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
    match = re.fullmatch(re.escape(stem) + r"_(-?[0-9]{1,18})" * len(variables), text)
    return None if match is None else tuple(int(number) for number in match.groups())


def _row_with(grid: Grid, inner: tuple[int, ...]) -> int | None:
    """The first row in which the innermost loop variables have these values."""
    rows = np.arange(grid.rows)
    for column, value in zip(grid.values[-len(inner) :], inner, strict=True):
        rows = rows[column[rows] == value]
    return int(rows[0]) if rows.size else None


def _locate(text: str, region: Region, grid: Grid, row: int) -> LocatedRegion:
    if region.buffer is None:
        raise UnknownNameError(f"`{text}` has no buffer")
    here = grid.at(row)
    offset, extent = value_at(offsets(region, here), 0), value_at(extents(region, here), 0)
    names = (loop.variable.name for loop in grid.loops)
    where = tuple(zip(names, grid.iteration(row), strict=True))
    is_bytes = region.compression is not None  # of which elements are yet to be made
    if is_bytes or region.elem is None or region.shape is None:
        plain = layout(_BYTE, (extent,))
        return LocatedRegion(text, region.buffer, offset, extent, None, plain, region, where)
    lookup = lookup_at((*region.shape, *(region.strides or ()), region.quant), here, 0)
    type_ = tensor_type(region, lookup)
    strides = None if region.strides is None else resolve_symbols(region.strides, lookup)
    region_layout = layout(type_.elem, type_.shape, strides)
    return LocatedRegion(
        text, region.buffer, offset, extent, type_, region_layout, region, where, strides
    )


def _unknown_name_text(text: str, plan: Plan) -> str:
    names = [*named_regions(plan), *(b.name for b in plan.program.buffers)]
    hint = did_you_mean(text, names)
    listed = ", ".join(f"`{name}`" for name in names[:8])
    return f"no region or buffer {backquote(text)}; {hint or f'there are {listed}'}"

"""A program expanded: a tree of blocks, one per body, with columns over its iterations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from msgspec import Struct

from nacre.base.term_columns import TermProblem
from nacre.base.terms import Term
from nacre.nem.model.program import Loop, Operand, Program, Region, Statement, Task
from nacre.nem.plan.footprints import Footprint, copies_bytes, footprint
from nacre.nem.plan.grid import TOP, EmptyLoop, Grid, TooManyRows, inner_grid
from nacre.nem.plan.order import Order


@dataclass(frozen=True, eq=False)
class Access:
    """An operand of a task and the bytes that it touches in every iteration."""

    task: Task
    operand: Operand
    grid: Grid
    footprint: Footprint

    @property
    def is_write(self) -> bool:
        """Whether the operand is written."""
        return self.operand.access == "write"

    @property
    def buffer_index(self) -> int:
        """The number of the buffer that it touches."""
        region = self.operand.region
        return region.buffer.index if region is not None and region.buffer is not None else -1

    @property
    def position(self) -> int:
        """The task's place in the text."""
        return self.task.position


@dataclass(frozen=True, eq=False)
class Block:
    """A body: its iterations, its own tasks, and the blocks of the loops in it."""

    grid: Grid
    loop: Loop | None  # None: the top level
    tasks: tuple[Task, ...]
    inner: tuple[Block, ...]

    @property
    def key(self) -> int:
        """The position of its loop; -1 for the top level."""
        return self.loop.position if self.loop is not None else -1

    def walk(self) -> Iterator[Block]:
        """This block and those inside it, in the order of the text."""
        yield self
        for block in self.inner:
            yield from block.walk()


class LoopProblem(Struct, frozen=True):
    """Why a loop could not be expanded."""

    loop: Loop
    outer: Grid
    problem: EmptyLoop | TooManyRows | TermProblem


@dataclass(frozen=True, eq=False)
class Plan:
    """Blocks, order, and the accesses to each buffer."""

    program: Program
    top: Block
    order: Order
    instances: int  # of tasks
    problems: tuple[LoopProblem, ...]
    grids: dict[int, Grid] = field(repr=False)  # of loops' bodies, by the loop's position
    # By region, body, and whether bytes are copied: a region is named by several tasks.
    _footprints: dict[tuple[int, int, bool], Footprint | None] = field(
        default_factory=dict, repr=False
    )
    _shared: dict[object, Footprint | None] = field(default_factory=dict, repr=False)

    @cached_property
    def accesses(self) -> dict[int, dict[int, list[Access]]]:
        """Buffer -> block (by its key) -> accesses, in the order of the text."""
        return _accesses_by_buffer(self)

    def grid_of(self, loops: tuple[Loop, ...]) -> Grid | None:
        """The grid of the body inside these loops; None where it could not be expanded."""
        return self.grids.get(loops[-1].position) if loops else TOP

    def footprint_of(self, task: Task, operand: Operand) -> Footprint | None:
        """The bytes that an operand touches, in every iteration around its task."""
        grid = self.grid_of(task.loops)
        if grid is None or operand.region is None:
            return None
        body = task.loops[-1].position if task.loops else -1
        key = (id(operand.region), body, copies_bytes(task))
        if key not in self._footprints:
            self._footprints[key] = self._shared_footprint(task, operand, grid, key[2])
        return self._footprints[key]

    def _shared_footprint(
        self, task: Task, operand: Operand, grid: Grid, as_bytes: bool
    ) -> Footprint | None:
        """The footprint of an operand; slots are used again, so equal ones are one value."""
        region = operand.region
        if region is None or region.buffer is None:
            return None
        offset = region.offset if isinstance(region.offset, int) else id(region.offset)
        place = (id(grid.known), offset, isinstance(region.offset, int))
        is_run = as_bytes or region.compression is not None
        what = (region.extent,) if is_run else (region.elem, region.shape, region.strides)
        if (place, what) not in self._shared:
            try:
                self._shared[place, what] = footprint(task, operand, grid)
            except TermProblem:  # reported where the region is checked
                self._shared[place, what] = None
        return self._shared[place, what]

    def region_grid(self, region: Region) -> Grid | None:
        """The grid over which a region's expressions vary."""
        return self.grid_of(region.loops)


def build_plan(program: Program, limit: int) -> Plan:
    """Expand a program's loops; those that cannot be are left out and reported in `problems`."""
    builder = _Builder(limit)
    top = builder.block(program.body, TOP, None)
    return Plan(
        program,
        top,
        Order(program),
        builder.instances,
        tuple(builder.problems),
        builder.grids,
    )


@dataclass(slots=True)
class _Builder:
    limit: int
    instances: int = 0
    rows: int = 0  # iterations of all loops
    problems: list[LoopProblem] = field(default_factory=list)
    grids: dict[int, Grid] = field(default_factory=dict)
    by_bounds: dict[tuple[int, int], Grid] = field(default_factory=dict)  # of loops at the top

    def block(self, body: tuple[Statement, ...], grid: Grid, loop: Loop | None) -> Block:
        """The block of a body whose grid is known."""
        tasks = tuple(s for s in body if isinstance(s, Task))
        self.instances += len(tasks) * grid.rows
        self.rows += grid.rows
        inner = [self._loop(s, grid) for s in body if isinstance(s, Loop)]
        return Block(grid, loop, tasks, tuple(b for b in inner if b is not None))

    def _loop(self, loop: Loop, outer: Grid) -> Block | None:
        if not isinstance(loop.first, float | None) and not isinstance(loop.last, float | None):
            try:
                grid = self._grid(loop, outer, loop.first, loop.last)
            except (EmptyLoop, TooManyRows, TermProblem) as problem:
                self.problems.append(LoopProblem(loop, outer, problem))
                return None
            self.grids[loop.position] = grid
            return self.block(loop.body, grid, loop)
        return None

    def _grid(self, loop: Loop, outer: Grid, first: Term, last: Term) -> Grid:
        """The iterations of a loop; loops with the same bounds share what terms are in them."""
        limit = self._iterations_left(loop)
        if outer is not TOP or not isinstance(first, int) or not isinstance(last, int):
            return inner_grid(outer, loop, first, last, limit)
        known = self.by_bounds.get((first, last))
        if known is not None and known.rows <= limit:
            return known.over(loop)
        grid = self.by_bounds[first, last] = inner_grid(outer, loop, first, last, limit)
        return grid

    def _iterations_left(self, loop: Loop) -> int:
        """How many iterations a loop may have so that the plan stays within the limit."""
        tasks = sum(isinstance(s, Task) for s in loop.body)
        # Iterations without tasks cost memory too, but a nest of loops has more rows than tasks.
        return min((self.limit - self.instances) // max(1, tasks), 4 * self.limit - self.rows)


def _accesses_by_buffer(plan: Plan) -> dict[int, dict[int, list[Access]]]:
    table: dict[int, dict[int, list[Access]]] = {}
    for block in plan.top.walk():
        for task in block.tasks:
            for operand in task.operands:
                footprint = plan.footprint_of(task, operand)
                buffer = operand.region.buffer if operand.region is not None else None
                # Regions that leave their buffer are reported as such; comparing them is moot.
                if footprint is None or buffer is None or not footprint.lies_within(buffer.size):
                    continue
                access = Access(task, operand, block.grid, footprint)
                table.setdefault(buffer.index, {}).setdefault(block.key, []).append(access)
    return table

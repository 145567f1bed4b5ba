"""The happens-before relation as a graph: what a machine must wait for, instance by instance.

Beside task instances there are events: gates (what `wait`, `.sync` and `endloop` hold back
everything further down for), the start of an iteration, and its completion. An edge says that
one happens before the other; every order that respects the edges is a legal execution.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nacre.base.term_columns import Column
from nacre.nem.model.program import Loop, Statement, Task, Wait
from nacre.nem.plan.grid import TOP, Grid
from nacre.nem.plan.plan import Plan


class Neighbours(NamedTuple):
    """The nodes on one side of each node: those of node n are nodes[first[n]:first[n + 1]]."""

    first: Column
    nodes: Column

    def of(self, node: int) -> list[int]:
        """The neighbours of one node."""
        neighbours: list[int] = self.nodes[self.first[node] : self.first[node + 1]].tolist()
        return neighbours


@dataclass(frozen=True, eq=False)
class EventGraph:
    """Nodes are numbers. A task's instances stand side by side, in the order of its grid."""

    size: int
    first_node: dict[int, int]  # of a task or wait, by its position
    first_start: dict[int, int]  # of a loop's iterations, by its position
    first_done: dict[int, int]
    sources: Column
    targets: Column

    def node(self, statement: Task | Wait, row: int) -> int:
        """The node of an instance."""
        return self.first_node[statement.position] + row

    @cached_property
    def before(self) -> Neighbours:
        """What each node waits for."""
        return self._neighbours(self.targets, self.sources)

    @cached_property
    def after(self) -> Neighbours:
        """What waits for each node."""
        return self._neighbours(self.sources, self.targets)

    def _neighbours(self, here: Column, there: Column) -> Neighbours:
        order = np.argsort(here, kind="stable")
        first = np.searchsorted(here[order], np.arange(self.size + 1))
        return Neighbours(first, there[order])


def event_graph(plan: Plan) -> EventGraph:
    """The edges of a whole plan."""
    builder = _Builder(plan)
    gate = builder.new_nodes(1)
    builder.body(plan.program.body, TOP, gate)
    empty = np.zeros(0, np.int64)
    return EventGraph(
        builder.size,
        builder.first_node,
        builder.first_start,
        builder.first_done,
        np.concatenate([empty, *builder.sources]),
        np.concatenate([empty, *builder.targets]),
    )


@dataclass(slots=True)
class _Builder:
    plan: Plan
    size: int = 0
    first_node: dict[int, int] = field(default_factory=dict)
    first_start: dict[int, int] = field(default_factory=dict)
    first_done: dict[int, int] = field(default_factory=dict)
    grids: dict[int, Grid] = field(default_factory=dict)  # of tasks, by position
    sources: list[Column] = field(default_factory=list)
    targets: list[Column] = field(default_factory=list)

    def new_nodes(self, rows: int) -> Column:
        """Fresh nodes, one a row."""
        nodes = np.arange(self.size, self.size + rows, dtype=np.int64)
        self.size += rows
        return nodes

    def link(self, sources: Column, targets: Column) -> None:
        """Each source happens before the target at its place."""
        self.sources.append(sources)
        self.targets.append(targets)

    def body(self, statements: tuple[Statement, ...], grid: Grid, gate: Column) -> list[Column]:
        """The nodes of a body's statements, all of which must be done when it is."""
        nodes: list[Column] = []
        for statement in statements:
            if isinstance(statement, Task):
                node = self._task(statement, grid, gate)
                nodes.append(node)
                after = [node] if statement.is_sync else []
            elif isinstance(statement, Wait):
                after = [self._instances(token, grid) for token in statement.tokens]
            else:
                after = self._loop(statement, grid, gate)
            if not isinstance(statement, Task) or statement.is_sync:
                gate = self._gate([gate, *after])
            if isinstance(statement, Wait):
                self.first_node[statement.position] = int(gate[0])
        return [*nodes, gate]

    def _gate(self, before: list[Column]) -> Column:
        gate = self.new_nodes(before[0].size)
        for nodes in before:
            self.link(nodes, gate)
        return gate

    def _task(self, task: Task, grid: Grid, gate: Column) -> Column:
        nodes = self.new_nodes(grid.rows)
        self.first_node[task.position] = int(nodes[0])
        self.grids[task.position] = grid
        self.link(gate, nodes)
        for dep in task.deps:
            self.link(self._instances(dep, grid), nodes)
        return nodes

    def _instances(self, token: int, grid: Grid) -> Column:
        """The instances of a task that rows of a grid at or below its own see."""
        rows = grid.row_in(self.grids[token], np.arange(grid.rows, dtype=np.int64))
        return self.first_node[token] + rows

    def _loop(self, loop: Loop, grid: Grid, gate: Column) -> list[Column]:
        inner = self.plan.grids.get(loop.position)
        if inner is None:  # it could not be expanded, which has been reported
            return []
        start, done = self.new_nodes(inner.rows), self.new_nodes(inner.rows)
        self.first_start[loop.position] = int(start[0])
        self.first_done[loop.position] = int(done[0])
        self.link(gate[inner.parent_row], start)
        ordinal = inner.ordinals[-1]
        # `done` also waits for the iteration before: then all up to it are complete.
        later = np.flatnonzero(ordinal >= 1)
        self.link(done[later - 1], done[later])
        held_back = np.flatnonzero(ordinal >= loop.window)
        self.link(done[held_back - loop.window], start[held_back])
        for nodes in self.body(loop.body, inner, start):
            self.link(nodes, done)
        last = np.append(np.flatnonzero(np.diff(inner.parent_row)), inner.rows - 1)
        return [done[last]]

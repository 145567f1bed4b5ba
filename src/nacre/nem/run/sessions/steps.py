"""Every instance of a task or wait as a number: its place in program order."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from nacre.base.term_columns import Column
from nacre.nem.model.program import Loop, Statement, Task, Wait
from nacre.nem.plan.edges import EventGraph, event_graph
from nacre.nem.plan.grid import Grid
from nacre.nem.plan.plan import Plan
from nacre.nem.plan.sequence import sequence
from nacre.nem.run.sessions.naming import instance_name, split_instance, statement_name


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of a plan as columns; a step is its index in them."""

    plan: Plan
    position: Column  # of the statement
    row: Column  # in the statement's grid
    numbers: dict[int, Column] = field(repr=False)  # the steps of a statement, by its position
    other_graph: EventGraph | None = field(
        default=None, repr=False
    )  # with more order than the plan

    @property
    def count(self) -> int:
        """How many there are."""
        return self.position.size

    @cached_property
    def statements(self) -> dict[int, Task | Wait]:
        """Tasks and waits by position."""
        found = self.plan.program.statements
        return {s.position: s for s in found if isinstance(s, Task | Wait)}

    @cached_property
    def _rows_of_loop(self) -> dict[int, dict[tuple[int, ...], int]]:
        return {}

    @cached_property
    def graph(self) -> EventGraph:
        """What happens before what."""
        return event_graph(self.plan) if self.other_graph is None else self.other_graph

    @cached_property
    def node(self) -> Column:
        """The node of every step in the graph."""
        first = np.zeros(max(self.statements, default=0) + 1, np.int64)
        for position in self.statements:
            first[position] = self.graph.first_node.get(position, 0)
        return first[self.position] + self.row

    @cached_property
    def step_of_node(self) -> Column:
        """The step of every node; -1 for nodes that complete by themselves."""
        found = np.full(self.graph.size, -1, np.int64)
        found[self.node] = np.arange(self.count)
        return found

    def statement(self, step: int) -> Task | Wait:
        """The statement of a step."""
        return self.statements[int(self.position[step])]

    def grid(self, statement: Task | Wait) -> Grid:
        """The iterations around a statement."""
        grid = self.plan.grid_of(statement.loops)
        if grid is None:
            raise ValueError("a statement that could not be expanded")
        return grid

    def iteration(self, step: int) -> tuple[int, ...]:
        """The loop variables around a step, outermost first."""
        statement = self.statement(step)
        return self.grid(statement).iteration(int(self.row[step]))

    def name(self, step: int) -> str:
        """The name of the instance: `tX[3]`."""
        return instance_name(self.plan.program, self.statement(step), self.iteration(step))

    def debug_name(self, step: int) -> str | None:
        """What `@debug` calls the task of a step."""
        return self.debug_names.get(int(self.position[step]))

    @cached_property
    def debug_names(self) -> dict[int, str]:
        """The names that `@debug` gives tasks, by position."""
        found = {task.position: task.debug_name for task in self.plan.program.tasks}
        return {position: name for position, name in found.items() if name is not None}

    def line(self, step: int) -> int:
        """The line on which the statement begins."""
        return self.line_of[int(self.position[step])]

    @cached_property
    def line_of(self) -> dict[int, int]:
        """The line of every statement, by its position."""
        span = self.plan.program.span
        return {p: span(s.node).location.line for p, s in self.statements.items()}

    def statements_named(self, text: str) -> list[Task | Wait]:
        """The statements that a name means, without regard to an iteration in brackets."""
        parts = split_instance(text)
        if parts is None:
            return []
        return self.by_name.get(parts[0], [])

    @cached_property
    def by_name(self) -> dict[str, list[Task | Wait]]:
        """Statements by name; sibling loops may use a name again."""
        found: dict[str, list[Task | Wait]] = {}
        for statement in self.statements.values():
            found.setdefault(statement_name(self.plan.program, statement), []).append(statement)
        return found

    def _rows(self, statement: Task | Wait) -> dict[tuple[int, ...], int]:
        """The row of every iteration: a recorded order asks for as many as there are."""
        innermost = statement.loops[-1].position if statement.loops else -1
        rows = self._rows_of_loop.get(innermost)
        if rows is None:
            grid = self.grid(statement)
            columns = [column.tolist() for column in grid.values]
            iterations = zip(*columns, strict=True) if columns else [()]
            rows = {iteration: row for row, iteration in enumerate(iterations)}
            self._rows_of_loop[innermost] = rows
        return rows

    def find_instance(self, text: str, nth: int = 0) -> int | None:
        """The step that a name with its iteration means; None where there is no such instance.

        Where several statements have the name, it is the nth of them, and then the last.
        """
        parts = split_instance(text)
        if parts is None:
            return None
        numbers = []
        for statement in self.by_name.get(parts[0], []):
            row = self._rows(statement).get(parts[1] or ())
            if row is not None:
                numbers.append(int(self.numbers[statement.position][row]))
        return numbers[min(nth, len(numbers) - 1)] if numbers else None


def row_of(grid: Grid, iteration: tuple[int, ...]) -> int | None:
    """The row in which the loop variables have these values."""
    if len(iteration) != len(grid.values):
        return None
    rows = np.arange(grid.rows)
    for column, value in zip(grid.values, iteration, strict=True):
        rows = rows[column[rows] == value]
    return int(rows[0]) if rows.size else None


def number_steps(plan: Plan) -> Steps:
    """The steps of a plan in program order."""
    numbers = sequence(plan, _is_step)
    total = sum(column.size for column in numbers.values())
    position, row = np.zeros(total, np.int64), np.zeros(total, np.int64)
    for at, column in numbers.items():
        position[column] = at
        row[column] = np.arange(column.size)
    return Steps(plan, position, row, numbers)


def _is_step(statement: Statement) -> bool:
    return not isinstance(statement, Loop)

"""Snapshots of a session: tokens, tasks, loops. Values, made when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nacre.nem.model.program import Loop, Task
from nacre.nem.run.sessions.frontier import Frontier
from nacre.nem.run.sessions.naming import task_name
from nacre.nem.run.sessions.steps import Steps


@dataclass(frozen=True, slots=True)
class StepResult:
    """What one step did."""

    task_id: str | None
    task_type: str | None
    status: str  # completed; waiting: started, its token is not satisfied; error; finished
    token: str | None = None
    deps: tuple[str, ...] = ()
    iteration: tuple[int, ...] = ()
    line: int | None = None
    debug: str | None = None  # what `@debug` calls the task
    diagnostics: tuple[Any, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class ExecutionState:
    """Where a session stands."""

    status: str
    step: int  # steps taken
    steps: int  # in all
    current_loop_iteration: int | None  # the latest admitted one of the innermost active loop
    active_loops: dict[str, tuple[int, ...]]  # loop variable -> admitted iterations not complete
    active_tasks: list[str]
    satisfied_tokens: set[str]
    engine_states: dict[int, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is: the steps taken, and what those of them that are complete let run.

    Steps that are in flight have started and hold back what waits for them: in timed runs only.
    """

    steps: Steps
    order: Sequence[int]
    frontier: Frontier
    in_flight: frozenset[int] = frozenset()


def progress_at(steps: Steps, order: Sequence[int], in_flight: frozenset[int]) -> Progress:
    """The progress of a timed run at a moment when some steps are in flight."""
    frontier = Frontier(steps)
    for step in order:
        if step not in in_flight:
            frontier.complete(step)
    return Progress(steps, order, frontier, in_flight)


def type_text(steps: Steps, step: int) -> str:
    """`conv2d.async`, or a wait with the tokens that it names."""
    statement = steps.statement(step)
    if isinstance(statement, Task):
        return f"{statement.op}.{'sync' if statement.is_sync else 'async'}"
    return f"wait({', '.join(dep_names(steps, step))})"


def dep_names(steps: Steps, step: int) -> list[str]:
    """The tokens that a step names, without iterations."""
    statement = steps.statement(step)
    positions = statement.deps if isinstance(statement, Task) else statement.tokens
    tasks = steps.plan.program.task_at
    return [task_name(steps.plan.program, tasks[p]) for p in positions]


def step_result(steps: Steps, step: int, status: str, diagnostics: tuple[Any, ...]) -> StepResult:
    """What a step did, as a value."""
    statement = steps.statement(step)
    is_task = isinstance(statement, Task)
    name = steps.name(step)
    return StepResult(
        name,
        type_text(steps, step),
        status,
        name if isinstance(statement, Task) and statement.token is not None else None,
        tuple(dep_names(steps, step)),
        steps.iteration(step),
        steps.line(step),
        steps.debug_name(step),
        diagnostics if is_task else (),
    )


def token_states(progress: Progress) -> dict[str, dict[str, Any]]:
    """Every token that can have been produced by now, under its instances and its bare name.

    A bare name means the latest instance that ran, and the first one before any has.
    """
    steps, done = progress.steps, set(progress.order) - progress.in_flight
    states: dict[str, dict[str, Any]] = {}
    latest = {int(steps.position[step]): step for step in progress.order}
    for task in steps.plan.program.tasks:
        if task.token is None:
            continue
        numbers = steps.numbers[task.position]
        bare = latest.get(task.position, int(numbers[0]))
        states[task.token] = {"satisfied": bare in done, "produced_by": steps.name(bare)}
        if task.loops:
            for step in _admitted_instances(progress, task):
                name = steps.name(step)
                states[name] = {"satisfied": step in done, "produced_by": name}
    return states


def _admitted_instances(progress: Progress, task: Task) -> Iterator[int]:
    """The instances of a task whose iterations have been admitted."""
    steps = progress.steps
    numbers = steps.numbers[task.position]
    if not task.loops:
        yield from numbers.tolist()
        return
    first = steps.graph.first_start[task.loops[-1].position]
    for row, step in enumerate(numbers.tolist()):
        if progress.frontier.is_done(first + row):
            yield step


def pending_tasks(progress: Progress) -> list[str]:
    """Tasks of admitted iterations that wait for something, in program order."""
    steps, done = progress.steps, set(progress.order)
    ready = set(progress.frontier.ready)
    waiting = [
        step
        for task in steps.plan.program.tasks
        for step in _admitted_instances(progress, task)
        if step not in done and step not in ready
    ]
    return [steps.name(step) for step in sorted(waiting)]


def ready_tasks(progress: Progress) -> list[str]:
    """Tasks that could run now, in program order."""
    steps = progress.steps
    free = [s for s in progress.frontier.ready if s not in progress.in_flight]
    return [steps.name(s) for s in free if isinstance(steps.statement(s), Task)]


def completed_tasks(progress: Progress) -> list[str]:
    """Tasks that are complete, in the order in which they started."""
    steps = progress.steps
    done = [s for s in progress.order if s not in progress.in_flight]
    return [steps.name(s) for s in done if isinstance(steps.statement(s), Task)]


def active_loops(progress: Progress) -> list[tuple[Loop, list[int]]]:
    """Loops with admitted iterations that are not complete, and the rows of those."""
    steps, frontier = progress.steps, progress.frontier
    active = []
    for loop in steps.plan.program.loops:
        first = steps.graph.first_start.get(loop.position)
        grid = steps.plan.grids.get(loop.position)
        if first is None or grid is None:
            continue
        done = steps.graph.first_done[loop.position]
        # A node of `done` stands for all iterations up to its own, so it says too little.
        rows = [
            row
            for row in range(grid.rows)
            if frontier.is_done(first + row) and not frontier.is_done(done + row)
        ]
        rows = [row for row in rows if not _is_complete(progress, loop, row)]
        if rows:
            active.append((loop, rows))
    return active


def _is_complete(progress: Progress, loop: Loop, row: int) -> bool:
    node = progress.steps.node
    return all(
        progress.frontier.is_done(int(node[step])) for step in steps_in(progress.steps, loop, row)
    )


def steps_in(steps: Steps, loop: Loop, row: int) -> list[int]:
    """The steps of one iteration of a loop, those of inner loops included, in program order."""
    grid, numbers = steps.plan.grids[loop.position], []
    for statement in steps.statements.values():
        if any(around is loop for around in statement.loops):
            inner = steps.grid(statement)
            rows = inner.row_in(grid, np.arange(inner.rows))
            numbers += steps.numbers[statement.position][rows == row].tolist()
    return sorted(numbers)


def steps_of_same_iteration(steps: Steps, step: int, loop: Loop) -> list[int]:
    """The steps of the iteration of a loop in which a step lies."""
    inner = steps.grid(steps.statement(step))
    rows = inner.row_in(steps.plan.grids[loop.position], np.array([steps.row[step]]))
    return steps_in(steps, loop, int(rows[0]))


def snapshot(progress: Progress, status: str, engines: dict[int, dict[str, Any]]) -> ExecutionState:
    """Where a session stands."""
    loops = active_loops(progress) if status != "finished" else []
    grids = progress.steps.plan.grids
    values = {
        loop.variable.name: tuple(int(grids[loop.position].values[-1][row]) for row in rows)
        for loop, rows in loops
    }
    innermost = max(loops, key=lambda pair: pair[0].depth)[0] if loops else None
    current = values[innermost.variable.name][-1] if innermost is not None else None
    names = {name for name, entry in token_states(progress).items() if entry["satisfied"]}
    active = [progress.steps.name(step) for step in sorted(progress.in_flight)]
    count = progress.steps.count
    return ExecutionState(
        status, len(progress.order), count, current, values, active, names, engines
    )

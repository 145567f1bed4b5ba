"""The columns that the event loop works on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nacre.base.loops.column_heaps import Ints
from nacre.base.term_columns import Column
from nacre.nem.model.program import Task
from nacre.nem.run.sessions.steps import Steps
from nacre.nem.run.timing.events import COUNTS, NEVER, TOP, Columns
from nacre.nem.run.timing.resources import NONE, Placement


def columns(
    steps: Steps, placement: Placement, token_limits: list[int], as_ints: Callable[[Column], Ints]
) -> Columns:
    """Everything that the loop reads and writes; `as_ints` makes lists or leaves arrays."""
    is_wait, has_token = _kinds(steps)
    if min(token_limits, default=NEVER) == NEVER:  # then nobody need know who names what
        has_token = np.zeros_like(has_token)
    queue, rows = _queues(placement, has_token)
    arrays = {
        **_step_columns(steps, placement, queue, counts_tokens=bool(has_token.any())),
        **_node_columns(steps),
        **_queue_columns(rows, queue),
        **_unit_columns(placement, token_limits),
        "is_wait": is_wait,
        "has_token": has_token,
        "heaps": np.zeros(steps.count + 1, np.int64),
        "active": np.zeros(len(rows) + 1, np.int64),
        "events": np.zeros(_max_pending_events(placement, is_wait), np.int64),
    }
    return Columns(**{name: as_ints(arrays[name]) for name in Columns._fields})


def _max_pending_events(placement: Placement, is_wait: Column) -> int:
    """The most events that can lie ahead: one a unit, and one for a task without any."""
    without_unit = int(((placement.pool < 0).all(axis=1) & (is_wait == 0)).sum())
    return sum(pool.count for pool in placement.pools) + without_unit + 2


def _step_columns(
    steps: Steps, placement: Placement, queue: Column, *, counts_tokens: bool
) -> dict[str, Column]:
    count = steps.count
    first_name, name = np.zeros(count + 1, np.int64), np.zeros(0, np.int64)
    if counts_tokens:
        first_name, name = _tokens_named(steps)
    left, mixed = _count_namers(count, first_name, name)
    return {
        "duration": placement.duration,
        "shared": placement.shared,
        "queue": queue,
        "node": steps.node,
        "first_name": first_name,
        "name": name,
        "namers_left": left,
        "namers_mixed": mixed,
        "ready": np.full(count, NONE, np.int64),
        "token_at": np.zeros(count, np.int64),
        "start": np.full(count, NONE, np.int64),
        "end": np.full(count, NONE, np.int64),
        "unit": np.full(2 * count, NONE, np.int64),
        "releaser_from": np.zeros(count, np.int64),
    }


def _node_columns(steps: Steps) -> dict[str, Column]:
    graph = steps.graph
    open_edges = np.bincount(graph.targets, minlength=graph.size)
    roots = np.flatnonzero(open_edges == 0)[::-1]
    stack = np.zeros(graph.size + 1, np.int64)
    stack[: roots.size] = roots
    counts = np.zeros(COUNTS, np.int64)
    counts[TOP] = roots.size
    return {
        "step_of": steps.step_of_node,
        "open_edges": open_edges,
        "first_edge": graph.after.first,
        "edge": graph.after.nodes,
        "node_time": np.full(graph.size, NONE, np.int64),
        "stack": stack,
        "counts": counts,
    }


def _queue_columns(rows: Column, queue: Column) -> dict[str, Column]:
    sizes = np.bincount(queue, minlength=len(rows))
    return {
        "pool": rows[:, [0, 1]].reshape(-1),
        "bound": rows[:, [2, 3]].reshape(-1),
        "engine": rows[:, 4],
        "shares": rows[:, 5],
        "heap_base": np.cumsum(sizes) - sizes,
        "heap_size": np.zeros(len(rows), np.int64),
        "releasers": np.zeros(len(rows), np.int64),
    }


def _unit_columns(placement: Placement, token_limits: list[int]) -> dict[str, Column]:
    instances = sum(pool.count for pool in placement.pools)
    engines = len(token_limits)
    return {
        "pool_first": np.array([*(p.first for p in placement.pools), instances], np.int64),
        "free_count": np.array([p.count for p in placement.pools], np.int64),
        "free_since": np.zeros(instances, np.int64),
        "token_limit": np.array(token_limits, np.int64),
        "live": np.zeros(engines, np.int64),
        "full_from": np.zeros(engines, np.int64),
        "full_until": np.zeros(engines, np.int64),
    }


def _kinds(steps: Steps) -> tuple[Column, Column]:
    """By step: whether it is a wait, and whether it makes a token."""
    last = max(steps.statements, default=-1) + 1
    is_wait, has_token = np.zeros(last, np.int64), np.zeros(last, np.int64)
    for position, statement in steps.statements.items():
        is_wait[position] = not isinstance(statement, Task)
        has_token[position] = isinstance(statement, Task) and statement.token is not None
    return is_wait[steps.position], has_token[steps.position]


def _queues(placement: Placement, has_token: Column) -> tuple[Column, Column]:
    """The queue of every step, and what each asks for: pools, instances, engine, sharing."""
    engine = np.where(has_token == 1, placement.engine, NONE)
    table = np.column_stack([placement.pool, placement.bound, engine, placement.shared > 0])
    # One number for each row of the table: sorting numbers is quicker than sorting rows.
    key = np.zeros(len(table), np.int64)
    for column in table.T:
        key = key * (int(column.max(initial=0)) + 2) + column + 1
    _, first, queue = np.unique(key, return_index=True, return_inverse=True)
    return queue.reshape(-1), table[first]


def named_steps(steps: Steps) -> tuple[Column, Column]:
    """Every pair of a step and a step that names its token."""
    sources, targets = [], []
    tasks = steps.plan.program.task_at
    for position, statement in steps.statements.items():
        numbers = steps.numbers[position]
        grid = steps.grid(statement)
        tokens = statement.deps if isinstance(statement, Task) else statement.tokens
        for token in dict.fromkeys(tokens):
            rows = grid.row_in(steps.grid(tasks[token]), np.arange(grid.rows, dtype=np.int64))
            sources.append(numbers)
            targets.append(steps.numbers[token][rows])
    empty = np.zeros(0, np.int64)
    return np.concatenate([empty, *targets]), np.concatenate([empty, *sources])


def _tokens_named(steps: Steps) -> tuple[Column, Column]:
    """The steps whose tokens each step names, side by side."""
    named, namer = named_steps(steps)
    order = np.argsort(namer, kind="stable")
    return np.searchsorted(namer[order], np.arange(steps.count + 1)), named[order]


def _count_namers(count: int, first_name: Column, name: Column) -> tuple[Column, Column]:
    """How many steps name each token, and the exclusive or of their numbers."""
    left = np.bincount(name, minlength=count)
    mixed = np.zeros(count, np.int64)
    namer = np.repeat(np.arange(count, dtype=np.int64), np.diff(first_name))
    np.bitwise_xor.at(mixed, name, namer)
    return left, mixed


def token_limits(limit: int | None, engines: int) -> list[int]:
    """The same limit on every engine; none is as good as infinite."""
    return [NEVER if limit is None else limit] * engines

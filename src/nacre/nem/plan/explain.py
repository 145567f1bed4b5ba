"""Why nothing orders two instances, in sentences that name every rule that could have."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice

from nacre.nem.model.program import Loop, Program, Statement, Task, Wait
from nacre.nem.plan.conflicts import Conflict

_MOST = 6


def explanation(program: Program, conflict: Conflict) -> list[str]:
    """What the later instance waits for, and why that does not include the earlier one."""
    if conflict.loop is not None:
        return _across_iterations(conflict, conflict.loop)
    u, v = conflict.first.task, conflict.second.task
    lines = [f"the order of the text orders nothing: {_name(u)} and {_name(v)} are asynchronous"]
    waits = list(islice(_wait_reasons(program, v), _MOST + 1))
    if waits:
        listed = "; ".join(waits[:_MOST]) + ("; and more" if len(waits) > _MOST else "")
        lines.append(f"{_name(v)} starts after: {listed}")
        lines.append(f"none of these is {_name(u)} or comes after it")
    else:
        lines.append(f"{_name(v)} waits for nothing")
    for loop in v.loops[len(u.loops) :]:
        lines.append(
            f"the start of loop `{loop.variable.name}` waits for nothing by itself; only "
            f"iterations {loop.window} and later wait for what an earlier one waited for"
        )
    return lines


def _across_iterations(conflict: Conflict, loop: Loop) -> list[str]:
    depth = loop.depth
    earlier = int(conflict.first.grid.ordinals[depth][conflict.first_row])
    later = int(conflict.second.grid.ordinals[depth][conflict.second_row])
    name, apart = loop.variable.name, later - earlier
    return [
        f"the two lie {apart} iteration{'s' if apart > 1 else ''} of loop `{name}` apart, and its "
        f"window is {loop.window}",
        f"iteration number {later} starts when all up to number {later - loop.window} are complete"
        if later >= loop.window
        else f"the first {loop.window} iterations start at once",
        "tokens, `wait` and `.sync` order tasks of one iteration, never of two",
    ]


def _name(task: Task) -> str:
    return f"`{task.token}`" if task.token is not None else f"the `{task.op}`"


def _wait_reasons(program: Program, v: Task) -> Iterator[str]:
    """Everything that holds `v` back in its own iteration, nearest first."""
    for dep in v.deps:
        yield f"{_name(program.task_at[dep])} (its deps)"
    barriers = program.barriers
    before = bisect_left(barriers, v.position, key=lambda s: s.position)
    for statement in reversed(barriers[:before]):
        around = len(statement.loops)
        is_on_the_way = statement.loops == v.loops[:around]
        if is_on_the_way and not (isinstance(statement, Loop) and statement in v.loops):
            yield _describe_barrier(program, statement)


def _describe_barrier(program: Program, statement: Statement) -> str:
    line = program.source.position(statement.node.start)[0]
    if isinstance(statement, Wait):
        return f"the wait in line {line}"
    if isinstance(statement, Loop):
        return f"the end of loop `{statement.variable.name}` of line {line}"
    return f"{_name(statement)} (.sync, line {line})"

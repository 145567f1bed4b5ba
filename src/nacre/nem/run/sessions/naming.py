"""Names of task instances: `tX`, `tX[3]`, `tX[1,2]`, and `relu@42` for a task without token."""

from __future__ import annotations

import re

from nacre.nem.model.program import Program, Task, Wait
from nacre.nem.plan.grid import Grid

# Integers have at most 64 bits; a longer row of digits is no iteration.
_NUMBER = r"\s*-?[0-9]{1,19}\s*"
_INSTANCE = re.compile(rf"(?P<name>[^\[\]]+)(?:\[(?P<iteration>{_NUMBER}(?:,{_NUMBER})*)\])?")


def task_name(program: Program, task: Task) -> str:
    """The token's name, or the opcode and its line."""
    if task.token is not None:
        return task.token
    return f"{task.op}@{program.span(task.node).location.line}"


def statement_name(program: Program, statement: Task | Wait) -> str:
    """The name of a task, or `wait@line`."""
    if isinstance(statement, Task):
        return task_name(program, statement)
    return f"wait@{program.span(statement.node).location.line}"


def instance_name(program: Program, statement: Task | Wait, iteration: tuple[int, ...]) -> str:
    """The name of a statement in one iteration of the loops around it."""
    name = statement_name(program, statement)
    return f"{name}[{','.join(map(str, iteration))}]" if iteration else name


def split_instance(text: str) -> tuple[str, tuple[int, ...] | None] | None:
    """A name as a user writes it, and the iteration, None where there is none; None: no name."""
    match = _INSTANCE.fullmatch(str(text).strip())
    if match is None:
        return None
    iteration = match["iteration"]
    if iteration is None:
        return match["name"].strip(), None
    return match["name"].strip(), tuple(int(part) for part in iteration.split(","))


def iteration_text(grid: Grid, row: int) -> str:
    """`` in iteration i=3, j=0``; empty outside loops."""
    values = grid.iteration(row)
    pairs = [f"{loop.variable.name}={v}" for loop, v in zip(grid.loops, values, strict=True)]
    return f" in iteration {', '.join(pairs)}" if pairs else ""

"""Replaying a race: everything that must come first, then its two tasks in either order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nacre.base.diagnostics import Diagnostic
from nacre.nem.run.memory.host import host_error
from nacre.nem.run.sessions.session import RunResult, Session
from nacre.nem.run.sessions.steps import Steps, row_of


@dataclass(frozen=True)
class Replay:
    """The two runs of a witness, and the buffers that they leave different."""

    first: RunResult  # the task that the program names first ran first
    second: RunResult
    differs: tuple[str, ...]  # names of buffers

    @property
    def matters(self) -> bool:
        """Whether the order of the two changes any byte."""
        return bool(self.differs)


def witness_steps(diagnostic: Diagnostic, steps: Steps) -> tuple[int, int]:
    """The two instances that a hazard speaks of."""
    data = getattr(diagnostic, "data", None) or {}
    pair = data.get("witness")
    if not isinstance(pair, list) or len(pair) != 2:
        code = getattr(diagnostic, "code", diagnostic)
        raise host_error(f"`{code}` carries no witness to replay")
    numbers = []
    for entry in pair:
        statement = steps.statements.get(entry["position"])
        row = (
            None if statement is None else row_of(steps.grid(statement), tuple(entry["iteration"]))
        )
        if statement is None or row is None:
            raise host_error("the witness belongs to another program")
        numbers.append(int(steps.numbers[statement.position][row]))
    return numbers[0], numbers[1]


def witness_orders(steps: Steps, first: int, second: int) -> tuple[list[str], list[str]]:
    """The two orders of a witness, as names of instances."""
    before = _ancestors(steps, [first, second])
    lead = [steps.name(step) for step in sorted(before)]
    a, b = steps.name(first), steps.name(second)
    return [*lead, a, b], [*lead, b, a]


def _ancestors(steps: Steps, targets: list[int]) -> set[int]:
    """Every step that must come before one of these."""
    graph = steps.graph
    seen = np.zeros(graph.size, np.bool_)
    stack = [int(steps.node[target]) for target in targets]
    while stack:
        node = stack.pop()
        for source in graph.before.of(node):
            if not seen[source]:
                seen[source] = True
                stack.append(source)
    ancestors = set(steps.step_of_node[np.flatnonzero(seen)].tolist())
    return ancestors - {-1, *targets}


def differing_buffers(first: Session, second: Session) -> tuple[str, ...]:
    """The buffers that two runs of a program leave different."""
    return tuple(
        buffer.name
        for buffer in first.plan.program.buffers
        if not np.array_equal(first.memory.storage(buffer).data, second.memory.storage(buffer).data)
    )

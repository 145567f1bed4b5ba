"""What reports call tasks, and where those stand."""

from __future__ import annotations

from nacre.nem.model.program import Program, Task
from nacre.nem.run.sessions.naming import task_name


class TaskPlaces:
    """Names and lines of the tasks of a program."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def name(self, task: Task) -> str:
        """What it is called."""
        return task_name(self._program, task)

    def line(self, task: Task) -> int:
        """The line that it stands on."""
        return self._program.span(task.node).location.line


def plural(count: int, what: str) -> str:
    """`1 block`, `1,200 blocks`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"

"""What reports and images call tasks, where those stand, and the layers that they are part of."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from itertools import repeat

from nacre.nem.model.program import Program, Task, Wait
from nacre.nem.run.sessions.naming import statement_name, task_name
from nacre.tcb.image import Origin


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


def origins_of(program: Program, layers: Mapping[str, str]) -> list[Origin]:
    """The origins of tasks and waits; `layers` are those of tasks by their names."""
    tasks = program.tasks
    found = list(map(
        Origin,
        [task.position for task in tasks],
        [task.token or statement_name(program, task) for task in tasks],
        _lines(program, [task.node.start for task in tasks]),
        _layers(tasks, layers),
    ))  # fmt: skip
    waits = [s for s in program.barriers if type(s) is Wait]
    if not waits:  # which is most programs
        return found
    lines = _lines(program, [wait.node.start for wait in waits])
    found += [
        Origin(w.position, f"wait@{line}", line) for w, line in zip(waits, lines, strict=True)
    ]
    found.sort(key=_position)
    return found


def _position(origin: Origin) -> int:
    return origin.position


def _lines(program: Program, starts: list[int]) -> list[int]:
    """The lines of what begins at some places of the text."""
    return list(map(bisect_right, repeat(program.source.line_starts), starts))


def _layers(tasks: tuple[Task, ...], layers: Mapping[str, str]) -> list[str | None]:
    """The layers of tasks: what is said of them, or what `@debug` calls them or loops around."""
    found: list[str | None] = []
    of_loops: dict[int, str | None] = {}  # by position of the innermost
    for task in tasks:
        layer = layers.get(task.name) if layers else None
        if layer is None:
            for decorator in task.decorators:
                if decorator.name == "debug" and (arguments := decorator.arguments):
                    name = arguments[0]
                    if type(name) is str:
                        layer = name
                        break
            else:
                if task.loops:
                    innermost = task.loops[-1].position
                    if innermost not in of_loops:
                        of_loops[innermost] = task.debug_name
                    layer = of_loops[innermost]
        found.append(layer)
    return found
